# Each target sets itself up in .venv; Python 3.11 or newer with venv is all that has to be there.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# What is never imported need not be compiled.
PIP = -m pip install --quiet --disable-pip-version-check --no-compile
PIP_INSTALL = $(BIN)/python $(PIP)
# A package that takes the place of onnxruntime's wants an environment of its own.
VENV_PROVIDERS ?= build/venv-providers
# Rockchip's compiler wants older packages than ours, and CPython 3.11.
VENV_RKNN ?= build/venv-rknn
PYTHON_RKNN ?= $(PYTHON)
VENV_QNN ?= build/venv-qnn
VENV_PYTORCH ?= build/venv-pytorch
VENV_VELA ?= build/venv-vela
# pnnx is a program: its package names PyTorch, which only its Python functions need.
PNNX = pnnx==20261020
NCNN = ncnn==1.0.20261020
DEMO_OUT ?= demo-out
ARMCL_BUILD ?= build/armcl
NATIVE_BUILD ?= build/native

.DEFAULT_GOAL := help
# .ci/run alone runs targets side by side, those that do not run pip in one environment.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
.PHONY: help environment environments-beside armcl-build demo test test-nightly test-report test-armcl test-armcl-opencl test-cuda test-native test-genai test-ncnn test-providers test-rknn test-qnn \
        test-vela lint docs bench bench-mapping fuzz packaged-models packaged-models-measured packaged-models-pytorch clean

help:
	@echo "make demo   map GoogLeNet onto the Amlogic A311D and draw the front"
	@echo "make test   run all tests but the nightly ones, in at most 10 minutes on two idle cores;"
	@echo "            those in a browser only if Chromium is there, and it says so"
	@echo "make test-nightly  run the tests that take minutes each"
	@echo "make test-armcl  install Debian packages, build the C++ runner, run its tests under emulation"
	@echo "make test-armcl-opencl  run its OpenCL back end too, on an emulated CPU; takes long"
	@echo "make test-cuda    compile a program for NVIDIA's GPUs, with nvcc, cuDNN and cuBLAS of CMAKE_PREFIX_PATH"
	@echo "make test-native  install Debian packages, XNNPACK and oneDNN, build the C++ runner for this machine, run its tests"
	@echo "make test-genai  install ONNX Runtime GenAI, and generate tokens by two plans"
	@echo "make test-ncnn  install pnnx, ncnn and a software Vulkan, convert and run small models"
	@echo "make test-providers  run a plan on two execution providers, one of them OpenVINO's"
	@echo "make test-rknn  install Rockchip's compiler beside us, compile and simulate small models"
	@echo "make test-qnn  install Qualcomm's compiler beside us, compile and emulate small models"
	@echo "make test-vela  install Arm's compiler for the Ethos-U beside us, with PyTorch; takes long"
	@echo "make test-report  run the tests of the report page; Chromium and chromedriver must be there"
	@echo "make lint   check style, types and the order of the floors"
	@echo "make docs   build the documents as a site, in build/site"
	@echo "make bench  measure how long each phase takes"
	@echo "make bench-mapping  measure the exact mapper against others, into benchmarks/results"
	@echo "make fuzz   read 30,000 damaged models and YAML files (FUZZ_ARGS)"
	@echo "make packaged-models  install third-party models, map and run them, and write their page"
	@echo "make packaged-models-pytorch  export, map and run models of torchvision, timm and transformers"
	@echo "make packaged-models-measured  also measure them on this machine, beside predictions"
	@echo "make clean  remove what the other targets made"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "parapipe needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-run: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.ready-test: $(VENV)/.ready-run
	$(PIP_INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/.ready-native: $(VENV)/.ready-test
	$(PIP_INSTALL) --editable '.[native]'
	@touch $@

$(VENV)/.ready-genai: $(VENV)/.ready-test
	$(PIP_INSTALL) --editable '.[test-genai]'
	@touch $@

$(VENV)/.ready-ncnn: $(VENV)/.ready-test
	$(PIP_INSTALL) --no-deps $(PNNX)
	$(PIP_INSTALL) $(NCNN)
	@touch $@

$(VENV_PROVIDERS)/.ready: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv $(VENV_PROVIDERS)
	$(VENV_PROVIDERS)/bin/python $(PIP) \
	  --editable '.[test-providers]'
	@touch $@

$(VENV_PYTORCH)/.ready: | $(BIN)/python
	$(BIN)/python -m venv $(VENV_PYTORCH)
	$(VENV_PYTORCH)/bin/python $(PIP) \
	  torch==2.14.1 torchvision==0.29.1 timm==1.0.31 transformers==5.24.0 onnxscript==0.7.2
	@touch $@

$(VENV_RKNN)/.ready: parapipe/compilers/rknn/requirements.txt
	$(PYTHON_RKNN) -m venv $(VENV_RKNN)
	$(VENV_RKNN)/bin/python $(PIP) --requirement $<
	$(VENV_RKNN)/bin/python $(PIP) --no-deps \
	  rknn-toolkit2==2.5.0
	@touch $@

$(VENV_QNN)/.ready: parapipe/compilers/qnn/requirements.txt
	$(PYTHON) -m venv $(VENV_QNN)
	$(VENV_QNN)/bin/python $(PIP) --requirement $<
	@touch $@

$(VENV_VELA)/.ready: parapipe/compilers/vela/requirements.txt
	$(PYTHON) -m venv $(VENV_VELA)
	$(VENV_VELA)/bin/python $(PIP) --requirement $<
	@touch $@

$(VENV)/.ready-lint: $(VENV)/.ready-run
	$(PIP_INSTALL) --editable '.[lint]'
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready-run
	$(PIP_INSTALL) --editable '.[docs]'
	@touch $@

# All that .ci/run needs in .venv by one run of pip, where the targets would take one each.
environment: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable '.[docs,lint,native,test,test-genai]' $(NCNN)
	$(PIP_INSTALL) --no-deps $(PNNX)
	@touch $(addprefix $(VENV)/.ready-,run test native genai ncnn lint docs)

environments-beside: $(VENV_PROVIDERS)/.ready $(VENV_RKNN)/.ready $(VENV_QNN)/.ready

demo: $(VENV)/.ready-run
	$(BIN)/parapipe map zoo:googlenet --platform amlogic-a311d --out $(DEMO_OUT) \
	  --figure $(DEMO_OUT)/front.png

test: $(VENV)/.ready-test
	@echo "all tests but the nightly ones: at most 10 minutes on two idle cores"
	$(BIN)/python -m pytest --numprocesses 2 --quiet -rs $(PYTEST_ARGS)

test-nightly: $(VENV)/.ready-test
	$(BIN)/python -m pytest --numprocesses 2 --quiet -m nightly $(PYTEST_ARGS)

test-report: $(VENV)/.ready-test
	PARAPIPE_BROWSER=required $(BIN)/python -m pytest --quiet tests/figures tests/browser $(PYTEST_ARGS)

armcl-build:
	runtimes/native/tests/packages.sh
	runtimes/native/tests/build.sh $(ARMCL_BUILD)

test-armcl: armcl-build $(VENV)/.ready-test
	PARAPIPE_ARMCL_BUILD=$(ARMCL_BUILD) $(BIN)/python -m pytest --numprocesses 2 --quiet tests/runtimes/native \
	  $(PYTEST_ARGS)

test-armcl-opencl: armcl-build $(VENV)/.ready-test
	runtimes/native/tests/pocl/prepare.sh $(ARMCL_BUILD)/pocl
	PARAPIPE_ARMCL_POCL=$(ARMCL_BUILD)/pocl PARAPIPE_ARMCL_BUILD=$(ARMCL_BUILD) \
	  $(BIN)/python -m pytest --quiet tests/runtimes/native/test_armcl_opencl.py $(PYTEST_ARGS)

test-native: $(VENV)/.ready-native
	runtimes/native/tests/packages.sh native
	PARAPIPE_NATIVE_BUILD=$(abspath $(NATIVE_BUILD)) $(BIN)/python -m pytest --numprocesses 2 --quiet \
	  tests/runtimes/onednn $(PYTEST_ARGS)

test-cuda: $(VENV)/.ready-test
	PARAPIPE_CUDA=required $(BIN)/python -m pytest --quiet tests/targets/test_cuda_folder.py $(PYTEST_ARGS)

test-genai: $(VENV)/.ready-genai
	PARAPIPE_GENAI=required $(BIN)/python -m pytest --quiet tests/targets/test_genai.py $(PYTEST_ARGS)

test-ncnn: $(VENV)/.ready-ncnn
	runtimes/native/tests/packages.sh vulkan
	PARAPIPE_NCNN=required $(BIN)/python -m pytest --numprocesses 2 --quiet \
	  tests/targets/test_ncnn_runs.py $(PYTEST_ARGS)

test-providers: $(VENV_PROVIDERS)/.ready
	PARAPIPE_PROVIDERS=required $(VENV_PROVIDERS)/bin/python -m pytest --quiet \
	  tests/runtime/test_two_providers.py $(PYTEST_ARGS)

test-rknn: $(VENV)/.ready-test $(VENV_RKNN)/.ready
	PARAPIPE_COMPILER_RKNN=$(abspath $(VENV_RKNN)/bin/python) $(BIN)/python -m pytest --numprocesses 2 --quiet \
	  tests/compilers/test_rknn_end_to_end.py tests/compilers/test_rknn_costs.py \
	  tests/targets/test_rknn_compiled.py $(PYTEST_ARGS)

test-qnn: $(VENV)/.ready-test $(VENV_QNN)/.ready
	PARAPIPE_COMPILER_QNN=$(abspath $(VENV_QNN)/bin/python) $(BIN)/python -m pytest --quiet \
	  tests/compilers/test_qnn.py $(PYTEST_ARGS)

test-vela: $(VENV)/.ready-test $(VENV_VELA)/.ready
	PARAPIPE_COMPILER_VELA=$(abspath $(VENV_VELA)/bin/python) $(BIN)/python -m pytest --quiet \
	  tests/compilers/test_vela.py $(PYTEST_ARGS)

lint: $(VENV)/.ready-lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "documents: build/site/index.html"

bench: $(VENV)/.ready-test
	$(BIN)/python -m benchmarks

bench-mapping: $(VENV)/.ready-test
	$(BIN)/python -m benchmarks.mapping_time
	$(BIN)/python -m benchmarks.mapping_quality
	$(BIN)/python -m benchmarks.wide_subgraphs

fuzz: $(VENV)/.ready-test
	$(BIN)/python -m benchmarks.fuzz $(FUZZ_ARGS)

packaged-models: $(VENV)/.ready-run
	mkdir -p build/packages
	rm -f build/rk3588.yaml
	$(BIN)/parapipe platforms new --chip rk3588 --out build/rk3588.yaml
	$(BIN)/python -m docs.packaged_models build/packages build/rk3588.yaml
	$(BIN)/python -m docs.native_backends build/packages

packaged-models-measured: packaged-models
	$(BIN)/python -m docs.packaged_models build/packages build/rk3588.yaml --measure

packaged-models-pytorch: $(VENV)/.ready-run $(VENV_PYTORCH)/.ready
	mkdir -p build/packages build/pytorch
	rm -f build/rk3588.yaml
	$(BIN)/parapipe platforms new --chip rk3588 --out build/rk3588.yaml
	$(VENV_PYTORCH)/bin/python docs/pytorch_models.py build/pytorch
	$(BIN)/python -m docs.packaged_models build/packages build/rk3588.yaml --pytorch build/pytorch

clean:
	rm -rf $(VENV) $(DEMO_OUT) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
