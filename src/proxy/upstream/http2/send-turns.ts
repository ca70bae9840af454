import { Turns } from '../../io/turns.ts';
import type { CarriedStream } from './carried-stream.ts';

/** Streams of one connection that have something to send which its windows, or its socket, did not take. */
export class SendTurns {
  readonly #waiting = new Turns<CarriedStream>();
  /** Those that have had their turn in vain: they wait for the next run. */
  readonly #stuck = new Turns<CarriedStream>();

  get any(): boolean {
    return this.#waiting.any;
  }

  add(stream: CarriedStream): void {
    this.#waiting.add(stream);
  }

  remove(stream: CarriedStream): void {
    this.#waiting.delete(stream);
    this.#stuck.delete(stream);
  }

  clear(): void {
    this.#waiting.clear();
    this.#stuck.clear();
  }

  /** Lets them send, one frame each in turn, for as long as any can. */
  run(socket: { readonly takesMore: boolean }): void {
    while (socket.takesMore) {
      const stream = this.#waiting.next();
      if (stream === undefined) break;
      const progress = stream.sendWaiting();
      // Added behind the others, it comes round again.
      if (progress === 'more') this.#waiting.add(stream);
      else if (progress === 'stuck') this.#stuck.add(stream);
    }
    for (const stream of this.#stuck.all()) this.#waiting.add(stream);
    this.#stuck.clear();
  }
}
