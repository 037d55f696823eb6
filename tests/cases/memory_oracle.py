"""Peak memory by running frames one behind the other, event by event, with counted references."""

from __future__ import annotations

from collections import Counter


def ps(time_s):
    return round(time_s * 10**12)


class Run:
    """Frames on their way; a tensor is freed when nobody refers to it any more."""

    def __init__(self, mapping, graph, period_s, *, memory_of, copies, size_bytes):
        self.mapping, self.graph, self.period_ps = mapping, graph, ps(period_s)
        self.memory_of, self.copies, self.size_bytes = memory_of, copies, size_bytes
        self.references, self.held, self.level = {}, Counter(), Counter()
        self.most_held, self.peaks, self.total = Counter(), Counter(), 0
        self.entered = set()
        self.queues = dict(self.queued())

    def readers(self, name):
        return [self.mapping.at[v] for v in self.graph.consumers.get(name, ())]

    def copied_to(self, name, p):
        """Processors that get a copy of what p has made."""
        there = {each.processor for each in self.readers(name)} - {p}
        return [q for q in there if self.copies(name, p, q)]

    def queued(self):
        for name, maker in self.graph.producer.items():
            made = self.mapping.at[maker]
            copied = self.copied_to(name, made.processor)
            for read in self.readers(name):
                if read.processor != made.processor and read.lag != made.lag:
                    q = read.processor
                    place = q if q in copied else made.processor
                    key = (q in copied, self.memory_of(place), place, name)
                    yield key, self.depth(name, made, place, copied)

    def depth(self, name, made, place, copied):
        """Slots of the deepest queue of those that share a place."""
        return max(
            self.slots(made, each)
            for each in self.readers(name)
            if each.lag != made.lag
            and each.processor != made.processor
            and (each.processor == place if place in copied else each.processor not in copied)
        )

    def slots(self, made, read):
        """Two, or as many frames as one finds there that comes when others still are."""
        if self.mapping.period_s is None:
            return max(2, read.lag - made.lag + 1)
        begin_ps, end_ps = ps(made.start_s), (read.lag - made.lag) * self.period_ps + ps(read.end_s)
        return max(2, len(range(begin_ps, end_ps, self.period_ps)))

    def events(self, frames):
        """Yield (time, phase, operator, step, frame, what); see `parapipe.mappings.memory`."""
        for n in range(frames):
            for at in self.mapping.placements:
                entry_ps = (n + at.lag) * self.period_ps
                span = entry_ps + ps(at.start_s), entry_ps + ps(at.end_s)
                yield from self.pair(*span, (at.operator, 0), n, (at, None))
            for moved in self.mapping.transfers:
                made = self.mapping.at[moved.producer]
                if self.copies(moved.tensor, moved.source, moved.target):
                    start_ps = ps(moved.start_s) + (n + moved.lag) * self.period_ps
                    end_ps = ps(moved.end_s) + (n + moved.lag) * self.period_ps
                    if moved.resource is None:
                        if self.mapping.period_s is not None or moved.lag == made.lag:
                            start_ps = ps(made.end_s) + (n + made.lag) * self.period_ps
                        end_ps = start_ps + ps(moved.time_s)
                    yield from self.pair(start_ps, end_ps, (moved.producer, 2), n, (None, moved))

    @staticmethod
    def pair(start_ps, end_ps, turn, frame, what):
        first, last = (2, 0) if end_ps > start_ps else (1, 1)
        operator, step = turn
        yield start_ps, first, operator, step, frame, (True, *what)
        yield end_ps, last, operator, step + 1, frame, (False, *what)

    def peak(self):
        """Return the most of each memory, and of all, in a period when the pipeline is full."""
        full = 2 * max(at.lag for at in self.mapping.placements) + 6
        window = range(full * self.period_ps, (full + 1) * self.period_ps)
        events = sorted(self.events(2 * full), key=lambda each: each[:5])
        left = Counter(frame for *_, frame, _ in events)
        for time_ps, *_, frame, what in events:
            if time_ps >= window.stop:
                break
            self.happen(frame, *what)
            left[frame] -= 1
            if not left[frame]:
                self.leave(frame)
            if time_ps in window:
                self.see()
        for key, slots in self.queues.items():  # all the time, and more if frames stay longer
            size_bytes = max(slots, self.most_held[key]) * self.size_bytes(key[3], key[2])
            self.peaks[key[1]] += size_bytes
            self.total += size_bytes
        return dict(self.peaks), self.total

    def happen(self, frame, begins, at, moved):
        if frame not in self.entered:
            self.entered.add(frame)
            self.load(frame)
        if at is None:
            self.move(moved, frame, begins)
        elif begins:
            self.start(at, frame)
        else:
            self.end(at, frame)

    def leave(self, frame):
        for name in self.graph.outputs:
            p = self.mapping.at[self.graph.producer[name]].processor
            self.release((False, self.memory_of(p), p, name), frame)

    def see(self):
        for memory, size_bytes in self.level.items():
            self.peaks[memory] = max(self.peaks[memory], size_bytes)
        self.total = max(self.total, sum(self.level.values()))

    def load(self, frame):
        for name in self.graph.inputs:
            places = {}
            for read in self.readers(name):
                p = read.processor
                first = next((q for q in places if not self.copies(name, q, p)), p)
                places.setdefault(first, []).append(p)
            for p, readers in places.items():
                key = (True, self.memory_of(p), p, name)
                self.take(key, frame, len(readers))

    def start(self, at, frame):
        for name in self.graph.operators[at.operator].outputs:
            p = at.processor
            copied = self.copied_to(name, p)
            here = [read for read in self.readers(name) if read.processor not in copied]
            references = 1 + len(here) + len(copied) + (name in self.graph.outputs)
            self.take((False, self.memory_of(p), p, name), frame, references)

    def end(self, at, frame):
        p, operator = at.processor, self.graph.operators[at.operator]
        for name in operator.outputs:
            self.release((False, self.memory_of(p), p, name), frame)
        for name in self.graph.reads(operator):
            if name in self.graph.inputs:
                key = next(
                    key
                    for key, n in self.references
                    if n == frame and key[0] and key[3] == name and not self.copies(name, key[2], p)
                )
            else:
                maker = self.mapping.at[self.graph.producer[name]].processor
                copied = maker != p and self.copies(name, maker, p)
                place = p if copied else maker
                key = (copied, self.memory_of(place), place, name)
            self.release(key, frame)

    def move(self, moved, frame, begins):
        source, target = moved.source, moved.target
        if begins:
            readers = [r for r in self.readers(moved.tensor) if r.processor == target]
            self.take((True, self.memory_of(target), target, moved.tensor), frame, len(readers))
        else:
            self.release((False, self.memory_of(source), source, moved.tensor), frame)

    def take(self, key, frame, references):
        assert (key, frame) not in self.references
        self.references[key, frame] = references
        self.held[key] += 1
        self.most_held[key] = max(self.most_held[key], self.held[key])
        if key not in self.queues:
            self.level[key[1]] += self.size_bytes(key[3], key[2])

    def release(self, key, frame):
        self.references[key, frame] -= 1
        if not self.references[key, frame]:
            del self.references[key, frame]
            self.held[key] -= 1
            if key not in self.queues:
                self.level[key[1]] -= self.size_bytes(key[3], key[2])
