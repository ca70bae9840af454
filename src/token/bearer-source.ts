/**
 * All that a data path needs to know of tokens: the Authorization value for a credential, now, or a promise of it.
 */
export interface BearerSource {
  /**
   * The Authorization field value (`Bearer …`, RFC 6750 §2.1) of a token that may be sent now; undefined when none
   * is held or the held one has expired. Synchronous: it is on the path of every request.
   */
  current(): string | undefined;

  /**
   * Waits for the grant in flight (or causes one) and resolves to its Authorization value.
   * @throws {TokenUnavailable} when no token is to be had within the credential's wait timeout.
   */
  obtain(): Promise<string>;

  /**
   * Says that an upstream answered 401 to `refused`, and resolves to another Authorization value worth one replay,
   * or to undefined when there is none: renewal failed, or renewing again so soon would only load the provider.
   */
  replace(refused: string): Promise<string | undefined>;
}
