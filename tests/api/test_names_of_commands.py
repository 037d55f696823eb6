"""Keywords of Python and options of the commands have the same names."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, signature

import click
import pytest

import parapipe
from parapipe.cli.command_line import SETTINGS, cli
from parapipe.documents.difference import DifferenceDocument
from parapipe.search.options import flag

VERBS = {
    "compare": [parapipe.compare],
    "compilers check": [parapipe.check_compiler],
    "compilers clear": [parapipe.clear_compiled],
    "compilers compile": [parapipe.compile_model],
    "compilers list": [parapipe.list_compilers],
    "compilers use": [parapipe.use_compiler],
    "diff": [parapipe.diff, DifferenceDocument.check],
    "evaluate": [parapipe.evaluate],
    "explain": [parapipe.explain, parapipe.explain_shapes],
    "export": [parapipe.export_plan, parapipe.export_shapes],
    "fit power": [parapipe.fit_power],
    "fit slowdowns": [parapipe.fit_slowdowns],
    "fit times": [parapipe.fit_times],
    "fit transfers": [parapipe.fit_transfers],
    "inspect": [parapipe.inspect, parapipe.draw_structure],
    "map": [
        parapipe.map,
        parapipe.map_states,
        parapipe.map_shapes,
        parapipe.ParetoFront.best,
    ],
    "pick": [parapipe.pick, parapipe.pick_shapes],
    "platforms catalogue": [parapipe.list_catalogue],
    "platforms check": [parapipe.check_platform],
    "platforms detect": [parapipe.detect_platform],
    "platforms fit": [parapipe.fit_platform],
    "platforms list": [parapipe.list_platforms],
    "platforms new": [parapipe.new_platform],
    "platforms show": [parapipe.show_platform],
    "profile": [
        parapipe.profile,
        parapipe.write_profile_bundle,
        parapipe.import_profile,
        parapipe.learn_from_runs,
        parapipe.profile_on_runtime,
        parapipe.measure_streams,
        parapipe.measure_under_load,
        parapipe.compile_profile,
    ],
    "report": [parapipe.report, parapipe.report_shapes],
    "run": [parapipe.run_plan, parapipe.run_shapes],
    "simulate": [parapipe.simulate_plan, parapipe.simulate_shapes],
    "split": [parapipe.split],
    "sweep": [parapipe.sweep],
    "verify": [parapipe.verify_plan, parapipe.verify_shapes],
    "zoo build": [parapipe.build_zoo],
    "zoo list": [parapipe.zoo_names],
}
PRINTED = {"--json", "--quiet", "--all", "--figures", "--sources", "--open", "--help"}
ELSEWHERE = {
    "--trace": "Run.save_trace",
    "--force": "NewPlatform.write",
    "--figure": "draw_comparison",
    "--to": "target, the second argument",
    "--no-cache": "cache=False",
    "--bundle": "write_profile_bundle",
    "--import": "import_profile",
    "--under-load": "measure_under_load",
    "--both-states": "map_states",
}
PLACES = {
    ("map", "--out"),
    ("platforms detect", "--out"),
    ("platforms fit", "--out"),
    ("platforms new", "--out"),
    ("zoo build", "--out"),
}
"""Where something is written that Python gives back, or takes as an argument without a name."""
OF_PYTHON = {"example_inputs", "model_file", "options", "executor", "progress", "note"}


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, **SETTINGS)
    for below in command.list_commands(context):
        yield from commands(command.get_command(context, below), f"{name} {below}".strip())


COMMANDS = dict(commands(cli))


def options_of(name: str) -> set[str]:
    parameters = COMMANDS[name].get_params(click.Context(COMMANDS[name], **SETTINGS))
    return {max(each.opts, key=len) for each in parameters if isinstance(each, click.Option)}


def keywords_of(name: str) -> dict[str, Parameter]:
    return {key: each for verb in VERBS[name] for key, each in signature(verb).parameters.items()}


def test_every_command_has_its_verb() -> None:
    assert set(COMMANDS) == set(VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_a_keyword_of_the_verb(name) -> None:
    own = {each for each in options_of(name) if (name, each) not in PLACES}
    assert own - PRINTED - set(ELSEWHERE) <= {flag(key) for key in keywords_of(name)}


@pytest.mark.parametrize("name", VERBS)
def test_every_keyword_of_the_verb_is_an_option(name) -> None:
    keywords = {
        key for key, each in keywords_of(name).items() if each.kind is Parameter.KEYWORD_ONLY
    }
    assert {flag(key) for key in keywords - OF_PYTHON} <= options_of(name)


def test_units_are_left_out_and_what_may_be_repeated_stands_for_one() -> None:
    names = (
        "min_fps",
        "max_latency_s",
        "max_energy_j",
        "max_power_w",
        "max_memory_bytes",
        "dims",
        "jobs",
    )
    told = [
        "--min-fps",
        "--max-latency",
        "--max-energy",
        "--max-power",
        "--max-memory",
        "--dim",
        "--jobs",
    ]
    assert [flag(name) for name in names] == told
