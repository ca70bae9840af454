import type { GatheredWriter } from '../io/gathered-writer.ts';
import type { TunnelEnd } from '../tunnel/tunnel.ts';

/** What an exchange knows of the app's connection. */
export interface AppSide extends TunnelEnd {
  readonly writer: GatheredWriter;
  /** Reads no further until `proceed`. */
  hold(): void;
  /** Goes on where `exchange` had it hold. */
  proceed(exchange: object): void;
  /**
   * Says that the answer has been written whole.
   * @param last whether the connection ends with it.
   * @param patienceMs how long the app may take to read what the system has not taken yet.
   */
  endAnswer(last: boolean, patienceMs: number): void;
  /**
   * Ends the connection amid an answer, by which the app knows that it is not whole.
   * @param byReset where a proper end would say that it is.
   */
  cut(byReset: boolean): void;
}
