interface Entry<Event> {
  readonly atMs: number;
  readonly event: Event;
}

/** What is going to happen, soonest first: a binary heap. */
export class EventQueue<Event> {
  readonly #heap: Entry<Event>[] = [];

  push(atMs: number, event: Event): void {
    const entry = { atMs, event };
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Entry<Event>;
      if (above.atMs <= atMs) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  pop(): Entry<Event> | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const right = heap[child + 1];
      if (right !== undefined && right.atMs < (heap[child] as Entry<Event>).atMs) child += 1;
      const below = heap[child];
      if (below === undefined || below.atMs >= last.atMs) break;
      heap[index] = below;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}
