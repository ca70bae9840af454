/** How our broker describes its refusals (RFC 6749 §5.2, `error_description`): sidecars tell by them what to do. */

export const NO_SUCH_CREDENTIAL = 'no profile gives this service account such a credential';

export const ASSERTION_NOT_TAKEN = 'the service account token is not taken';
