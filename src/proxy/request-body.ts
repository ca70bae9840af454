import type { ClientRequest, IncomingMessage } from 'node:http';
import { trailerFields } from './header-rules.ts';
import { ReplayBuffer } from './replay-buffer.ts';

export interface RequestBodyOptions {
  readonly present: boolean;
  /** Bytes kept so that the request can be sent again. */
  readonly replayBytes: number;
  /** Bytes after which `onTooLarge` is called; 0 for no limit. */
  readonly maxBytes: number;
  /** Called when bytes have moved, or when there was room for more. */
  onProgress(): void;
  onTooLarge(): void;
  /** Called once, with the last byte from the app. */
  onComplete(): void;
}

/**
 * The app's request body on its way upstream. It goes to one attempt at a time, no faster than that attempt takes
 * it, and may be sent to another from its beginning while `whole`.
 */
export class RequestBody {
  readonly #incoming: IncomingMessage;
  readonly #options: RequestBodyOptions;
  readonly #kept: ReplayBuffer;
  #receiver: ClientRequest | undefined;
  #bytes = 0;
  #complete: boolean;
  #discarding = false;
  #full = false;

  constructor(incoming: IncomingMessage, options: RequestBodyOptions) {
    this.#incoming = incoming;
    this.#options = options;
    this.#kept = new ReplayBuffer(options.replayBytes);
    this.#complete = !options.present;
    if (this.#complete) {
      incoming.resume();
      return;
    }
    // Paused before the listener is on, or the first bytes would flow to no one.
    incoming.pause();
    incoming.on('data', (chunk: Buffer) => this.#take(chunk));
    incoming.on('end', () => {
      this.#complete = true;
      this.#finish();
      options.onComplete();
    });
  }

  /** Whether it can be sent again: everything the app has sent so far is kept. */
  get whole(): boolean {
    return this.#kept.whole;
  }

  /** Whether the app has sent it all. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Whether the receiver has taken all that the app has sent, so that it is the app who keeps it waiting. */
  get awaitsApp(): boolean {
    return !this.#complete && !this.#full;
  }

  /** Sends it to `receiver`, from its beginning. */
  sendTo(receiver: ClientRequest): void {
    this.#receiver = receiver;
    this.#full = false;
    receiver.on('drain', () => {
      if (this.#receiver !== receiver) return;
      this.#full = false;
      this.#options.onProgress();
      this.#incoming.resume();
    });
    receiver.on('close', () => {
      if (this.#receiver !== receiver) return;
      this.#receiver = undefined;
      // What comes now belongs to the next attempt, if there is one; else somebody discards it.
      if (!this.#discarding) this.#incoming.pause();
      else this.discard();
    });
    for (const chunk of this.#kept.chunks) this.#write(receiver, chunk);
    if (this.#complete) this.#finish();
    else {
      // The upstream may answer, or ask for the body, on the head alone.
      receiver.flushHeaders();
      if (!this.#full) this.#incoming.resume();
    }
  }

  /** Reads no further until `proceed` or `sendTo`. */
  hold(): void {
    if (!this.#complete) this.#incoming.pause();
  }

  /** Goes on where `hold` stopped. */
  proceed(): void {
    if (!this.#complete && !this.#full) this.#incoming.resume();
  }

  /** It will not be sent again. What the attempt does not take any more is dropped. */
  settle(): void {
    this.#discarding = true;
    this.#kept.release();
    if (this.#receiver === undefined) this.discard();
    else this.proceed();
  }

  /** Reads the rest, if any comes, and drops it. */
  discard(): void {
    this.#discarding = true;
    this.#kept.release();
    this.#receiver = undefined;
    if (!this.#complete) this.#incoming.resume();
  }

  #take(chunk: Buffer): void {
    this.#options.onProgress();
    this.#bytes += chunk.byteLength;
    const { maxBytes } = this.#options;
    if (maxBytes > 0 && this.#bytes > maxBytes && !this.#discarding) {
      this.#options.onTooLarge();
      return;
    }
    this.#kept.add(chunk);
    if (this.#receiver !== undefined) this.#write(this.#receiver, chunk);
  }

  #write(receiver: ClientRequest, chunk: Uint8Array): void {
    if (receiver.destroyed || receiver.write(chunk)) return;
    this.#full = true;
    this.#incoming.pause();
  }

  #finish(): void {
    const receiver = this.#receiver;
    if (receiver === undefined || receiver.destroyed) return;
    const trailers = trailerFields(this.#incoming.rawTrailers);
    if (trailers.length > 0) receiver.addTrailers(trailerPairs(trailers));
    receiver.end();
  }
}

/** Flat fields as Node's `addTrailers` wants them. */
export function trailerPairs(fields: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index < fields.length; index += 2) {
    pairs.push([fields[index] as string, fields[index + 1] as string]);
  }
  return pairs;
}
