/** As much of oidc-provider's interface as these tests use; the package brings no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export default class Provider {
    constructor(issuer: string, configuration: unknown);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
  }
}
