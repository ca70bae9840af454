import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Delivery, UpstreamStream, UpstreamUser } from './upstream-stream.ts';

/** Has a connection to an upstream, and sends no request on it: of an answer nothing can come. */
export class WithoutRequest implements UpstreamUser {
  connected(_instead?: UpstreamStream): void {}
  informed(): void {}
  answered(): void {}
  switched(): void {}
  answerData(): void {}
  answerEnded(): void {}
  flushAnswer(): void {}
  upstreamReady(): void {}
  stalled(): void {}
  upstreamFailed(_error: SidecarError<ProxyErrorCode>, _delivery: Delivery): void {}
}
