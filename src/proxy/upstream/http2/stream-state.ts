import type { CarriedRequest } from './carried-request.ts';
import type { Http2Connection } from './connection.ts';

/** How far a request is on its way to an upstream. */
export type StreamState =
  /** For a connection, or for room on one. */
  | { readonly kind: 'waiting' }
  /** The request may be sent. */
  | { readonly kind: 'lent'; readonly connection: Http2Connection }
  | CarriedRequest
  | { readonly kind: 'over' };
