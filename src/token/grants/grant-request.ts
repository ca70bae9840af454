/** What one grant asks the provider for, whatever the grant. */

import type { CredentialSettings } from '../../config/config.ts';
import type { ProofOfClient } from '../client/client-authentication.ts';

export interface GrantRequest {
  /** The Authorization field. */
  readonly authorization?: string | undefined;
  readonly body: { readonly type: string; readonly text: string };
  /** The media type of the answer; JSON unless given. */
  readonly accept?: string;
  /** For an answer unlike RFC 6749 §5: maps its fields to the RFC's. */
  readonly translate?: TranslateAnswer;
}

/** @param providerNowMs wall time of the request by the provider's clock, for answers that name an instant. */
export type TranslateAnswer = (
  fields: Readonly<Record<string, unknown>>,
  providerNowMs: number,
) => Readonly<Record<string, unknown>>;

/** For whom and to where a request is made. */
export interface GrantOccasion {
  readonly proof: ProofOfClient;
  readonly tokenUrl: string;
  /** Wall time in ms. */
  readonly nowMs: number;
  /** The request's own token, where it is exchanged. */
  readonly subject?: string | undefined;
  /** The token that an upstream has refused, if the endpoint wants to know. */
  readonly refused?: string | undefined;
}

type Asked = Pick<CredentialSettings, 'scope' | 'audience' | 'parameters'>;

/**
 * A form (RFC 6749 §4.4.2, appendix B) with what the grant needs, what proves the client, and what the credential asks
 * for. What the URL's query has is not repeated (§3.2).
 * @param own the grant's parameters, with `grant_type`; undefined ones are left out.
 */
export function formRequest(
  own: Readonly<Record<string, string | undefined>>,
  { proof: { authorization, parameters }, tokenUrl }: Pick<GrantOccasion, 'proof' | 'tokenUrl'>,
  asked: Asked,
): GrantRequest {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...own, ...parameters })) {
    if (value !== undefined) form.set(name, value);
  }
  if (asked.scope !== undefined) form.set('scope', asked.scope);
  if (asked.audience !== undefined) form.set('audience', asked.audience);
  for (const [name, value] of Object.entries(asked.parameters)) {
    for (const one of typeof value === 'string' ? [value] : value) form.append(name, one);
  }
  for (const name of new URL(tokenUrl).searchParams.keys()) form.delete(name);
  return { authorization, body: { type: 'application/x-www-form-urlencoded', text: form.toString() } };
}
