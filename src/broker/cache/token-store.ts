/** What the cache asks of a store. It is there, or it is away: nobody waits for it to come back. */

export interface TokenStore {
  /** Whether a question has a chance to be answered. */
  isConnected(): boolean;
  /** What is stored under each name, in this order. */
  read(names: readonly string[]): Promise<Answer<readonly Found[]>>;
  /** Longer values, and times that are none, are the caller's fault. */
  write(name: string, value: string, lifeMs: number): Promise<Answer<'written'>>;
  /** Takes the name for itself, for so long, unless somebody has it. */
  claim(name: string, lifeMs: number): Promise<Answer<'claimed' | 'taken'>>;
  remove(name: string): Promise<Answer<'removed'>>;
  /** Resolves once it has been tried whether the store is there; never rejects. */
  readonly tried: Promise<void>;
  /** With what is mounted now: other CAs, another password. */
  reconnect(): void;
  close(): Promise<void>;
}

export type Answer<T> = { readonly state: 'answered'; readonly value: T } | { readonly state: 'away' };

export type Found =
  | { readonly kind: 'nothing' }
  /** @property leftMs by the clock of the store. */
  | { readonly kind: 'value'; readonly value: string; readonly leftMs: number }
  /** No value of ours: of another type, too long, or without end. */
  | { readonly kind: 'foreign' };

export interface StoreFailure {
  /**
   * - `unreachable`: no connection, or it was closed.
   * - `tls`: no handshake, or a certificate that is not trusted.
   * - `timeout`: no connection, or no answer, in time.
   * - `refused`: it answers with an error: of the password, of rights, of room.
   * - `protocol`: it says what this protocol does not have.
   */
  readonly reason: 'unreachable' | 'tls' | 'timeout' | 'refused' | 'protocol';
  /** May be shown: nothing in it is what the store or the network said, but for a code. */
  readonly detail: string;
}

export const FAILURE_REASONS: readonly StoreFailure['reason'][] = [
  'unreachable',
  'tls',
  'timeout',
  'refused',
  'protocol',
];
