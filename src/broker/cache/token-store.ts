/** What the cache needs of a store. The store answers or is away: nobody waits for its return. */

export interface TokenStore {
  /** Whether a command has a chance of an answer. */
  isConnected(): boolean;
  /** The values stored under each name, in this order. */
  read(names: readonly string[]): Promise<Answer<readonly Found[]>>;
  /** Longer values and invalid times are the caller's fault. */
  write(name: string, value: string, lifeMs: number): Promise<Answer<'written'>>;
  /** Claims the name for this long, unless it is taken. */
  claim(name: string, lifeMs: number): Promise<Answer<'claimed' | 'taken'>>;
  remove(name: string): Promise<Answer<'removed'>>;
  /** Resolves once a connection has been tried; never rejects. */
  readonly tried: Promise<void>;
  /** With the files as mounted now: other CAs, another password. */
  reconnect(): void;
  close(): Promise<void>;
}

export type Answer<T> = { readonly state: 'answered'; readonly value: T } | { readonly state: 'away' };

export type Found =
  | { readonly kind: 'nothing' }
  /** @property leftMs by the store's clock. */
  | { readonly kind: 'value'; readonly value: string; readonly leftMs: number }
  /** Not a value of ours: of another type, too long, or without expiry. */
  | { readonly kind: 'foreign' };

export interface StoreFailure {
  /**
   * - `unreachable`: no connection, or it was closed.
   * - `tls`: no handshake, or an untrusted certificate.
   * - `timeout`: no connection, or no answer, in time.
   * - `refused`: it answers with an error about the password, permissions or room.
   * - `protocol`: its answer does not fit the protocol.
   */
  readonly reason: 'unreachable' | 'tls' | 'timeout' | 'refused' | 'protocol';
  /** May be shown: it repeats nothing from the store or the network except a code. */
  readonly detail: string;
}

export const FAILURE_REASONS: readonly StoreFailure['reason'][] = [
  'unreachable',
  'tls',
  'timeout',
  'refused',
  'protocol',
];
