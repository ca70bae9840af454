import type { ProxyLimits } from '../../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import { ByteQueue } from '../io/byte-queue.ts';
import type { IncomingRequest, UpstreamStream } from '../streams/contract.ts';
import type { TokenPlacement } from '../streams/token-placement.ts';

interface RequestBodyOptions {
  readonly mayOutgrow: boolean;
  /** Bytes kept for a second sending. */
  readonly replayBytes: number;
  /** A larger body is refused; 0: no limit. */
  readonly maxBytes: number;
  /** Drops trailers that would stand beside the token. If absent, all pass. */
  readonly placement?: Pick<TokenPlacement, 'permitted'> | undefined;
}

const NO_TRAILERS: Fields = [];

/** A request body on its way to one connection at a time. While `whole`, it can be sent to another from its beginning. */
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

  get whole(): boolean {
    return this.#kept.whole;
  }

  get heldBytes(): number {
    return this.#kept.heldBytes;
  }

  /** If so, no retry can be promised. */
  get mayOutgrow(): boolean {
    return !this.#complete && this.#options.mayOutgrow;
  }

  /**
   * Sends from the beginning, and the rest as it arrives; flushes nothing.
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

  detach(): void {
    this.#receiver = undefined;
  }

  settle(): void {
    this.#kept.release();
  }
}

export function requestBodyOf(
  { contentLength }: Pick<IncomingRequest, 'contentLength'>,
  { replayBytes, requestBodyBytes }: ProxyLimits,
  placement?: TokenPlacement,
): RequestBody {
  // A body that cannot fit is not kept.
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

/** Once more than `maxBytes` have passed, it is empty and not `whole`. */
export class ReplayBuffer {
  readonly #maxBytes: number;
  readonly #kept = new ByteQueue();
  #whole = true;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get whole(): boolean {
    return this.#whole;
  }

  get heldBytes(): number {
    return this.#kept.length;
  }

  /** Uncopied; valid until `release`. */
  get slices(): readonly Buffer[] {
    return this.#kept.pieces();
  }

  /** Keeps a copy. */
  add(slice: Buffer): void {
    if (!this.#whole) return;
    if (this.#kept.length + slice.length > this.#maxBytes) this.release();
    else this.#kept.add(slice);
  }

  release(): void {
    this.#whole = false;
    this.#kept.clear();
  }
}
