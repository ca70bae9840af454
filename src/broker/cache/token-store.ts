export interface TokenStore {
  isConnected(): boolean;
  /** In the names' order. */
  read(names: readonly string[]): Promise<Answer<readonly Found[]>>;
  /** The caller checks length and time. */
  write(name: string, value: string, lifeMs: number): Promise<Answer<'written'>>;
  /** Claims the name for this long, unless it is taken. */
  claim(name: string, lifeMs: number): Promise<Answer<'claimed' | 'taken'>>;
  remove(name: string): Promise<Answer<'removed'>>;
  /** Never rejects. */
  readonly tried: Promise<void>;
  reconnect(): void;
  close(): Promise<void>;
}

export type Answer<T> = { readonly state: 'answered'; readonly value: T } | { readonly state: 'away' };

export type Found =
  | { readonly kind: 'nothing' }
  /** @property leftMs by the store's clock. */
  | { readonly kind: 'value'; readonly value: string; readonly leftMs: number }
  /** Of another type, too long, or without expiry. */
  | { readonly kind: 'foreign' };

export interface StoreFailure {
  /**
   * - `unreachable`: no connection, or closed.
   * - `tls`: no handshake, or an untrusted certificate.
   * - `timeout`: no connection or answer in time.
   * - `refused`: about password, permissions or room.
   * - `protocol`: a malformed answer.
   */
  readonly reason: 'unreachable' | 'tls' | 'timeout' | 'refused' | 'protocol';
  /** May be shown: it repeats only a code of the store. */
  readonly detail: string;
}

export const FAILURE_REASONS: readonly StoreFailure['reason'][] = [
  'unreachable',
  'tls',
  'timeout',
  'refused',
  'protocol',
];
