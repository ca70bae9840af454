/** What one request carries to show who the client is. */
export interface ProofOfClient {
  /** The Authorization field, for methods that use one. */
  readonly authorization?: string;
  /** Form parameters, for methods that use some. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** RFC 7523 §2.2. */
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** The parameters of a client that proves itself with a JWT. */
export function assertionParameters(jwt: string): Record<string, string> {
  return { client_assertion_type: ASSERTION_TYPE, client_assertion: jwt };
}
