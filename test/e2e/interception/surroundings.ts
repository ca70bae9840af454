/** What the world and those that look at it have in common. */

/** `forward`: clients know a proxy by their environment. `hosts`: names lead to the sidecar by the hosts file. */
export type WorldMode = 'forward' | 'hosts';

/** Gets the token. */
export const API = 'api.example.com';

/** Is at the same address, and on no list. */
export const OTHER = 'other.example.com';

export const API_ADDRESS = '10.99.0.1';

/**
 * Servers that show certificates of an authority as the sidecar's is, made for GOOD alone: one that it may make, and those that it
 * has no right to.
 */
export const GOOD = 'good.example.net';
export const FORGED = ['bank.example.org', `below.${GOOD}`, `not${GOOD}`] as const;
export const FORGER_ADDRESS = '10.99.0.2';

/** Where what that authority is trusted by lies, below the world's directory. */
export const FORGER_TRUST = 'forger';

/** What the API says to whatever it has no file for. */
export const BODY = 'hello from the API';

export const TOKEN = 'eyJpbnRlcmNlcHRlZA.of.the-world';

/** What arrived at the API. */
export interface Arrived {
  readonly path: string;
  readonly host: string;
  readonly version: string;
  /** `ours`, `none`, or what it was instead. */
  readonly token: string;
}
