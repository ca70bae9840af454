import type { Exchange } from '../../exchange/exchange.ts';
import type { BodyDecoder } from '../../http1/body-decoder.ts';
import type { ConnectionSuccessor } from '../../streams/contract.ts';
import type { Http1AppStream } from './stream.ts';

/** How far one connection from the app is. */
export type Stage =
  /** Between requests: nothing of the next one has come. */
  | { readonly kind: 'idle' }
  /** Part of a head has come, or the connection is new. */
  | { readonly kind: 'head' }
  | Http1AppStream
  /** Answered; the rest of the request's body is read and dropped. */
  | { readonly kind: 'dropping'; readonly body: BodyDecoder }
  /** Nothing that comes now is looked at. */
  | { readonly kind: 'closing' }
  /** The bytes are those of another protocol, and somebody else's. */
  | { readonly kind: 'tunnel'; readonly exchange: Exchange }
  /** The same, once the request that made it so has been counted: nothing of that is kept. */
  | { readonly kind: 'handed-off'; readonly successor: ConnectionSuccessor };

export const IDLE: Stage = { kind: 'idle' };
export const HEAD: Stage = { kind: 'head' };
export const CLOSING: Stage = { kind: 'closing' };
