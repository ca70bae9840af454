import type { GrantTrace } from './bearer-source.ts';
import type { TokenResponse } from './provider/token-response.ts';
import type { GrantReason } from './token-state.ts';

/** Makes spans of grants. The code behind it is loaded only where traces are asked for. */
export interface GrantTracer {
  begin(credential: string, reason: GrantReason): GrantSpan;
}

/** The span of one grant, from the decision to request it to its outcome. */
export interface GrantSpan {
  readonly trace: GrantTrace;
  end(ended: EndedGrantSpan): void;
}

/** Holds nothing secret: no token, no detail of an answer. */
export interface EndedGrantSpan {
  /** `given_up`: another took its place, or the program ends. */
  readonly result: TokenResponse['result'] | 'given_up';
  /** Where it was requested: the token endpoint, or the issuer that has not named it. */
  readonly where: string | undefined;
  /** Of the token endpoint's answer, if one came. */
  readonly status: number | undefined;
}
