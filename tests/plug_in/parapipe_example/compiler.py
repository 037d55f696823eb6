"""The compiler `listing`: its file lists the operators, in place of one that an NPU runs."""

from hashlib import sha256
from pathlib import Path

from parapipe.compilers.contract import (
    CompiledRow,
    CompiledSegment,
    CompileError,
    CompileJob,
    Environment,
)
from parapipe.compilers.prepare import load_segment


class Listing:
    """Leaves nothing to the CPU, and tells no cycles."""

    name, title, targets, prices = "listing", "Lists of operators", ("paper",), False

    def version(self, environment: Environment, folder: Path) -> str:
        """Return the version."""
        return "1.0"

    def compile(self, job: CompileJob, environment: Environment, folder: Path) -> CompiledSegment:
        """Write the names of the segment's nodes."""
        nodes = load_segment(job.model).graph.node
        file = folder / "segment.txt"
        file.write_text("\n".join(node.name for node in nodes), encoding="utf-8")
        rows = [
            CompiledRow(n.op_type, "NPU", job.precision, (n.name,), "name", None) for n in nodes
        ]
        digest = sha256(file.read_bytes()).hexdigest()
        return CompiledSegment(file, digest, self.name, "1.0", tuple(rows))

    def simulate(
        self, job: CompileJob, environment: Environment, inputs: Path, folder: Path
    ) -> Path:
        """Refuse: there is no simulator."""
        raise CompileError(f"{job.model.name}: 'listing' has no simulator", "refused")
