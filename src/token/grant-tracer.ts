import type { GrantTrace } from './bearer-source.ts';
import type { TokenResponse } from './provider/token-response.ts';
import type { GrantReason } from './token-state.ts';

/** Makes spans of grants. What stands behind it is loaded where somebody asks for traces. */
export interface GrantTracer {
  begin(credential: string, reason: GrantReason): GrantSpan;
}

/** The span of one grant, from the decision to ask to what came of it. */
export interface GrantSpan {
  readonly trace: GrantTrace;
  end(ended: EndedGrantSpan): void;
}

/** Nothing of it is secret: no token, no detail of an answer. */
export interface EndedGrantSpan {
  /** `given_up`: another took its place, or the program ends. */
  readonly result: TokenResponse['result'] | 'given_up';
  /** Where it was asked for: the token endpoint, or the issuer that has not named it. */
  readonly where: string | undefined;
  /** Of the token endpoint's answer, where one came. */
  readonly status: number | undefined;
}
