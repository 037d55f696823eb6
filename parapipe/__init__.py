"""parapipe: exact mapping of neural networks onto the unequal processors of a system-on-chip.

Every name below is loaded when it is first used. This file imports nothing by itself: until the
command line minds signals, an interruption would show where Python is.
"""

from __future__ import annotations

from parapipe.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from parapipe.api.compiled import compile_profile as compile_profile
    from parapipe.api.compilers import check_compiler as check_compiler
    from parapipe.api.compilers import clear_compiled as clear_compiled
    from parapipe.api.compilers import compile_model as compile_model
    from parapipe.api.compilers import list_compilers as list_compilers
    from parapipe.api.compilers import use_compiler as use_compiler
    from parapipe.api.evaluate import evaluate as evaluate
    from parapipe.api.explain import explain as explain
    from parapipe.api.fit import fit_power as fit_power
    from parapipe.api.fit import fit_slowdowns as fit_slowdowns
    from parapipe.api.fit import fit_times as fit_times
    from parapipe.api.fit import fit_transfers as fit_transfers
    from parapipe.api.front import Configuration as Configuration
    from parapipe.api.front import ParetoFront as ParetoFront
    from parapipe.api.front import StoredFront as StoredFront
    from parapipe.api.front import load_front as load_front
    from parapipe.api.imported import import_profile as import_profile
    from parapipe.api.load import load_model as load_model
    from parapipe.api.load import load_plan as load_plan
    from parapipe.api.load import load_platform as load_platform
    from parapipe.api.map import map as map
    from parapipe.api.map import mapper_names as mapper_names
    from parapipe.api.models import build_zoo as build_zoo
    from parapipe.api.models import draw_structure as draw_structure
    from parapipe.api.models import inspect as inspect
    from parapipe.api.models import split as split
    from parapipe.api.models import zoo_examples as zoo_examples
    from parapipe.api.models import zoo_names as zoo_names
    from parapipe.api.pick import pick as pick
    from parapipe.api.plan import Plan as Plan
    from parapipe.api.plan import export_plan as export_plan
    from parapipe.api.plan import export_targets as export_targets
    from parapipe.api.plan import verify_plan as verify_plan
    from parapipe.api.platforms import check_platform as check_platform
    from parapipe.api.platforms import fit_platform as fit_platform
    from parapipe.api.platforms import list_catalogue as list_catalogue
    from parapipe.api.platforms import list_platforms as list_platforms
    from parapipe.api.platforms import new_platform as new_platform
    from parapipe.api.platforms import show_platform as show_platform
    from parapipe.api.profile import detect_platform as detect_platform
    from parapipe.api.profile import learn_from_runs as learn_from_runs
    from parapipe.api.profile import measure_streams as measure_streams
    from parapipe.api.profile import measure_under_load as measure_under_load
    from parapipe.api.profile import profile as profile
    from parapipe.api.profile import write_profile_bundle as write_profile_bundle
    from parapipe.api.reports import compare as compare
    from parapipe.api.reports import diff as diff
    from parapipe.api.reports import draw_comparison as draw_comparison
    from parapipe.api.reports import report as report
    from parapipe.api.run import run_plan as run_plan
    from parapipe.api.run import run_plans as run_plans
    from parapipe.api.runtime_profile import profile_on_runtime as profile_on_runtime
    from parapipe.api.shape_picks import pick_shapes as pick_shapes
    from parapipe.api.shape_reports import explain_shapes as explain_shapes
    from parapipe.api.shape_reports import export_shapes as export_shapes
    from parapipe.api.shape_reports import report_shapes as report_shapes
    from parapipe.api.shape_runs import run_shapes as run_shapes
    from parapipe.api.shape_runs import simulate_shapes as simulate_shapes
    from parapipe.api.shapes import map_shapes as map_shapes
    from parapipe.api.shapes import verify_shapes as verify_shapes
    from parapipe.api.simulate import simulate_plan as simulate_plan
    from parapipe.api.simulate import simulate_plans as simulate_plans
    from parapipe.api.simulate import strategy_names as strategy_names
    from parapipe.api.states import map_states as map_states
    from parapipe.cost.cost_table import CostTable as CostTable
    from parapipe.errors import ParapipeError as ParapipeError
    from parapipe.files.progress import Progress as Progress
    from parapipe.front.run import Run as Run
    from parapipe.graph.operator_graph import OperatorGraph as OperatorGraph
    from parapipe.platform.platform import Platform as Platform
    from parapipe.search.options import MapOptions as MapOptions
    from parapipe.sweeps.sweep import load_sweep as load_sweep
    from parapipe.sweeps.sweep import sweep as sweep

    __all__: list[str]


def _modules() -> dict[str, str]:
    """Return the modules of the names above: what type checkers import is loaded on first use."""
    import re
    from pathlib import Path

    text = Path(__file__).read_text(encoding="utf-8")
    listed = re.findall(r"^    from parapipe\.(\S+) import (\w+)", text, re.M)
    return {name: module for module, name in listed}


def __getattr__(name: str) -> object:
    from importlib import import_module

    modules = _modules()
    if name == "__all__":
        return list(modules)
    if name not in modules:
        from difflib import get_close_matches

        near = " or ".join(
            f"'{each}'" for each in get_close_matches(name, modules, n=5, cutoff=0.5)
        )
        told = f"; did you mean {near}?" if near else ""
        raise AttributeError(f"module 'parapipe' has no attribute '{name}'{told}")
    globals()[name] = found = getattr(import_module(f"parapipe.{modules[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*_modules(), "__version__"]
