"""Requests of a language model in several shapes: a prompt, then token after token."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from parapipe.api.checked import Folder, Model, checked
from parapipe.api.run import Cores, check_place
from parapipe.api.shapes import load_placements
from parapipe.api.simulate import Disturbed
from parapipe.errors import ExecutionError
from parapipe.files.checked_arguments import Count, FromZero, Must, NotEmpty, Seconds, Share
from parapipe.files.progress import Progress, Tell
from parapipe.search.option_types import FilePath

if TYPE_CHECKING:
    from parapipe.documents.build_request import Request, RequestShape
    from parapipe.documents.request_schema import RequestDocument
    from parapipe.simulate.variation import RandomFactors

FEW = 3  # tokens of a request that is not counted
Name = Annotated[str, Must("the id or a name of a configuration")]


@checked
def run_shapes(
    directory: Folder,
    configuration: Name | None = None,
    *,
    tokens: Count | None = None,
    requests: Count = 1,
    warmup: FromZero = 1,
    input: Annotated[NotEmpty | Path, Must("the path of an .npz file")] | None = None,
    model: Model | None = None,
    cores: Cores | None = None,
    patience_s: Seconds | None = None,
    keep: FilePath | None = None,
    progress: Tell | None = None,
) -> RequestDocument:
    """Run requests of a language model: a prompt by one placement, each token by the other.

    Sessions of all placements are open at the same time. States go from the prompt's last step to
    the first token's, and from each token's to the next one's; each token is the index of the
    largest of the last logits.

    Parameters
    ----------
    directory
        Folder that `map_shapes` was written to, or the shapes.json in it.
    configuration
        Its id ("s01") or name ("one-processor"). Default: the balanced one.
    tokens
        How many a request writes. Default: a step for each in the mix, and the prompt's own.
    requests
        How many, one after the other; figures are medians.
    warmup
        Requests of a few tokens to run first; they are not counted.
    input
        An `.npz` file with the prompt as `input_ids`, and further inputs that are the same in all
        steps. Default: random numbers. Masks, positions and caches are made.
    model, cores, patience_s
        As of `run_plan`.
    keep
        Write the tokens and the results of all steps of the last request, states apart, to this
        `.npz` file.
    progress
        Called now and then, when tokens are written.

    Raises
    ------
    FrontError, NoConfigurationError, PlanError, VerificationError
        The folder or a plan cannot be read, breaks rules, or has no prompt and tokens after it.
    RuntimeMissingError
        ONNX Runtime is not installed.
    ExecutionError
        A plan cannot be run here, the prompt does not fit, or the run ended before its time.
    """
    if keep is not None:
        check_place(keep)
    from parapipe.api.request_run import RequestRun, inputs_of, opened_shapes
    from parapipe.documents.build_request import Request, request_document
    from parapipe.plan.verify import verify_plan
    from parapipe.profiling.providers import onnx_runtime
    from parapipe.runtime.folder import RunError

    request = Request.of(*load_placements(directory, configuration), tokens)
    for each in request.shapes:
        verify_plan(each.plan)
    onnx_runtime()
    times_s: list[list[float]] = []
    try:
        with opened_shapes(request, model, cores or {}, patience_s) as opened:
            prompt, others = inputs_of(None if input is None else Path(input), request, opened)
            run = RequestRun(request, opened, prompt, others)
            for _ in range(warmup):
                run.once(min(request.answer.steps, FEW))
            begin_s = monotonic()
            for number in range(1, requests + 1):
                times_s.append(run.once(request.answer.steps, keep=number == requests))
                if progress is not None:
                    spent_s = monotonic() - begin_s
                    progress(Progress(number, requests, 0.0, spent_s, phase="running"))
            if keep is not None:
                run.write(Path(keep))
    except RunError as error:
        raise ExecutionError(str(error)) from error
    return request_document(
        request,
        times_s,
        how="run",
        prompt=prompt.shape[-1],
        slots=run.slots,
        chosen=run.tokens,
    )


@checked
def simulate_shapes(
    directory: Folder,
    configuration: Name | None = None,
    *,
    tokens: Count | None = None,
    requests: Count = 1,
    jitter: Share = 0.0,
    disturb: Disturbed | None = None,
    seed: FromZero = 0,
) -> RequestDocument:
    """Simulate requests of a language model: a prompt by one placement, each token by the other.

    Without jitter and disturbance, figures are the predicted ones; on several processors they may
    be less, where an operator begins sooner than planned.

    Parameters
    ----------
    directory, configuration, tokens
        As of `run_shapes`.
    requests
        How many, one after the other; figures are medians.
    jitter, disturb
        As of `simulate_plan`.
    seed
        Of the first request; each further one has the next number.

    Raises
    ------
    FrontError, NoConfigurationError, PlanError, VerificationError
        As of `run_shapes`.
    SimulationError
        Steps would block each other, or are too many.
    """
    from parapipe.api import simulating
    from parapipe.documents.build_request import Request, request_document
    from parapipe.plan.verify import verify_plan
    from parapipe.simulate.variation import RandomFactors

    request = Request.of(*load_placements(directory, configuration), tokens)
    for each in request.shapes:
        verify_plan(each.plan)
        simulating.check_size([each.plan], each.steps)
    shares = simulating.disturbed_shares([each.plan for each in request.shapes], disturb or {})
    luck = [RandomFactors(jitter, shares, seed + number) for number in range(requests)]
    times_s = [_simulated_s(request, None if each.is_none else each) for each in luck]
    return request_document(
        request, times_s, how="simulation", prompt=request.most_prompt, slots={}
    )


def _simulated_s(request: Request, luck: RandomFactors | None) -> list[float]:
    """Return when each token of a request is there, in seconds from its begin."""
    from parapipe.simulate.simulation import simulate

    def done_s(each: RequestShape) -> list[float]:
        frames = simulate(each.plan, frames=each.steps, luck=luck).record.frames
        return [frame.done_s - frames[0].admitted_s for frame in frames]

    now_s = request.prompt[0].plan.predicted.input_s
    for each in request.prompt:
        now_s += request.moved_s(each.name) + done_s(each)[-1]
    now_s += request.prompt[-1].plan.predicted.output_s
    moved_s = request.moved_s(request.answer.name)
    return [now_s, *(now_s + moved_s + each_s for each_s in done_s(request.answer))]
