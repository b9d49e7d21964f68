/** A binary heap of states by their cost when they were put in; what has become cheaper since is passed over. */
export class Heap {
  private costs: number[] = [];
  private states: number[] = [];

  push(cost: number, state: number): void {
    let at = this.costs.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.costs[parent]! <= cost) break;
      [this.costs[at], this.states[at]] = [this.costs[parent]!, this.states[parent]!];
      at = parent;
    }
    [this.costs[at], this.states[at]] = [cost, state];
  }

  pop(known: Float64Array): number {
    while (this.costs.length) {
      const [cost, state] = [this.costs[0]!, this.states[0]!];
      const [lastCost, lastState] = [this.costs.pop()!, this.states.pop()!];
      if (this.costs.length) this.sink(lastCost, lastState);
      if (cost <= known[state]!) return state;
    }
    return -1;
  }

  private sink(cost: number, state: number): void {
    const { costs, states } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= costs.length) break;
      if (child + 1 < costs.length && costs[child + 1]! < costs[child]!) child++;
      if (costs[child]! >= cost) break;
      [costs[at], states[at]] = [costs[child]!, states[child]!];
      at = child;
    }
    [costs[at], states[at]] = [cost, state];
  }
}
