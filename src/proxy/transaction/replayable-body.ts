import type { ProxyLimits } from '../../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import { ByteQueue } from '../io/byte-queue.ts';
import type { IncomingRequest, UpstreamStream } from '../streams/contract.ts';
import type { TokenPlacement } from '../streams/token-placement.ts';

interface RequestBodyOptions {
  /** Whether the body may outgrow what is kept. */
  readonly mayOutgrow: boolean;
  /** Bytes kept so that the request can be sent again. */
  readonly replayBytes: number;
  /** A larger body is refused; 0 for no limit. */
  readonly maxBytes: number;
  /** Drops trailers that would stand beside the token; absent where all trailers pass. */
  readonly placement?: Pick<TokenPlacement, 'permitted'> | undefined;
}

const NO_TRAILERS: Fields = [];

/**
 * The app's request body on its way upstream. It goes to one connection at a time; while `whole`, it can be sent to
 * another from its beginning.
 */
export class RequestBody {
  readonly #options: RequestBodyOptions;
  readonly #kept: ReplayBuffer;
  #receiver: UpstreamStream | undefined;
  #bytes = 0;
  #complete = false;
  #trailers = NO_TRAILERS;

  constructor(options: RequestBodyOptions) {
    this.#options = options;
    this.#kept = new ReplayBuffer(options.replayBytes);
  }

  /** Whether it can be sent again: everything the app has sent so far is kept. */
  get whole(): boolean {
    return this.#kept.whole;
  }

  /** Octets that are kept. */
  get heldBytes(): number {
    return this.#kept.heldBytes;
  }

  /** Whether the body may still outgrow what is kept, so that a retry cannot be promised. */
  get mayOutgrow(): boolean {
    return !this.#complete && this.#options.mayOutgrow;
  }

  /**
   * Sends what there is from the beginning, and the rest as it arrives; flushes nothing.
   * @throws {SidecarError} `internal` once its beginning is no longer kept.
   */
  sendTo(receiver: UpstreamStream, nowMs: number): void {
    if (!this.whole && this.#bytes > 0)
      throw new SidecarError('internal', 'a body was to be sent again without its beginning');
    this.#receiver = receiver;
    for (const slice of this.#kept.slices) receiver.data(slice);
    if (this.#complete) receiver.end(this.#trailers, nowMs);
    else receiver.touch();
  }

  /** @throws {SidecarError} `request_too_large`; `internal` for bytes that would be lost. */
  take(slice: Buffer): void {
    this.#bytes += slice.length;
    const { maxBytes } = this.#options;
    if (maxBytes > 0 && this.#bytes > maxBytes) throw bodyTooLarge(maxBytes);
    this.#kept.add(slice);
    if (this.#receiver === undefined) {
      if (!this.whole)
        throw new SidecarError('internal', 'more of a body came than is kept for its receiver');
      return;
    }
    this.#receiver.data(slice);
    this.#receiver.touch();
  }

  end(trailers: Fields, nowMs: number): void {
    this.#complete = true;
    this.#trailers = this.#options.placement?.permitted(trailers) ?? trailers;
    this.#receiver?.end(this.#trailers, nowMs);
  }

  /** Sends no more to the present receiver. */
  detach(): void {
    this.#receiver = undefined;
  }

  /** The body will not be sent again. */
  settle(): void {
    this.#kept.release();
  }
}

/** The body of a request whose body is still to come. */
export function requestBodyOf(
  { contentLength }: Pick<IncomingRequest, 'contentLength'>,
  { replayBytes, requestBodyBytes }: ProxyLimits,
  placement?: TokenPlacement,
): RequestBody {
  // A body that cannot fit is not kept at all.
  const fits = (contentLength ?? 0) <= replayBytes;
  return new RequestBody({
    mayOutgrow: contentLength === undefined || !fits,
    replayBytes: fits ? replayBytes : 0,
    maxBytes: requestBodyBytes,
    placement,
  });
}

export function bodyTooLarge(maxBytes: number): SidecarError<ProxyErrorCode> {
  return new SidecarError('request_too_large', `the request body is larger than ${maxBytes} bytes`);
}

/**
 * The beginning of a request body, kept for a retry. Once more than `maxBytes` have passed, it drops everything and is
 * no longer `whole`: memory does not grow with the body.
 */
export class ReplayBuffer {
  readonly #maxBytes: number;
  readonly #kept = new ByteQueue();
  #whole = true;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether `slices` is everything that was added. */
  get whole(): boolean {
    return this.#whole;
  }

  get heldBytes(): number {
    return this.#kept.length;
  }

  /** What is kept, uncopied; valid until `release`. */
  get slices(): readonly Buffer[] {
    return this.#kept.pieces();
  }

  /** Keeps a copy. */
  add(slice: Buffer): void {
    if (!this.#whole) return;
    if (this.#kept.length + slice.length > this.#maxBytes) this.release();
    else this.#kept.add(slice);
  }

  /** Drops what was kept; from here on the body cannot be sent again. */
  release(): void {
    this.#whole = false;
    this.#kept.clear();
  }
}
