"""The entry point. It minds signals before anything is imported that takes time."""

from __future__ import annotations

import gc
import os
import sys

from parapipe.cli.signals import Stopped, leave, mind_signals, stop_minding

TYPE_CHECKING = False  # `typing` takes time to load
if TYPE_CHECKING:
    from collections.abc import Sequence

# Commands make millions of objects and few circles of them: looked for as often as Python does by
# default, these take a seventh of the time.
OBJECTS_BETWEEN_COLLECTIONS = 100_000

# Arrays are small here: each further thread would add a tenth to the processor time, by waiting.
THREADS_OF_NUMPY = "1"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 could not, 2 usage, 128 and the signal's number.

    The arguments are those of the process if None.
    """
    try:
        mind_signals()
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", THREADS_OF_NUMPY)
        import warnings

        from parapipe.cli.command_line import debugging, run

        if not (sys.warnoptions or debugging()):
            warnings.simplefilter("ignore")  # those of other packages are no use to the user
        code = run(arguments)
        stop_minding()
    except Stopped as stopped:
        leave(stopped.number)
    gc.freeze()  # nothing to collect on the way out: that would take a tenth of a second and more
    sys.exit(code)


if __name__ == "__main__":
    main()
