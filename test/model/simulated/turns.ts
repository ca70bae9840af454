import { ticks } from '../ticks.ts';

/** May have more to do in this turn, before anything else is delivered. */
type Task = () => readonly Task[] | undefined;

const MAX_TURNS = 2000;

/**
 * The event loop of the simulated network. In each turn what has come is delivered, piece by piece, with promises and
 * ticks in between as in Node's own loop; then closed sockets say so.
 */
export class Turns {
  #deliveries: Task[] = [];
  #closings: (() => void)[] = [];
  readonly #onTurn: () => void;

  /** @param onTurn is called at the end of each. */
  constructor(onTurn: () => void) {
    this.#onTurn = onTurn;
  }

  /** In the next turn. */
  deliver(task: Task): void {
    this.#deliveries.push(task);
  }

  /** At the end of a turn, after all deliveries. */
  closing(task: () => void): void {
    this.#closings.push(task);
  }

  /** @returns whether anything happened. */
  async turn(): Promise<boolean> {
    const deliveries = this.#deliveries.splice(0);
    const tasks = [...deliveries].reverse();
    for (let task = tasks.pop(); task !== undefined; task = tasks.pop()) {
      tasks.push(...[...(task() ?? [])].reverse());
      await ticks();
    }
    // Node's own immediates come after what has been read, and before what has been closed.
    await new Promise((resolve) => setImmediate(resolve));
    const closings = this.#closings.splice(0);
    for (const task of closings) {
      task();
      await ticks();
    }
    this.#onTurn();
    return deliveries.length + closings.length > 0;
  }

  /** @throws {Error} when things go on happening without end. */
  async settle(): Promise<void> {
    for (let turn = 0, quiet = 0; quiet < 4; turn++) {
      if (turn > MAX_TURNS) throw new Error(`something still happens after ${MAX_TURNS} turns`);
      quiet = (await this.turn()) || this.#waiting ? 0 : quiet + 1;
    }
  }

  get #waiting(): boolean {
    return this.#deliveries.length + this.#closings.length > 0;
  }
}
