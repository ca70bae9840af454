/** An OAuth library in the app is pointed at the local token endpoint: nothing else of it knows of the sidecar. */

import {
  allowInsecureRequests,
  ClientSecretBasic,
  clientCredentialsGrantRequest,
  OperationProcessingError,
  processClientCredentialsResponse,
  ResponseBodyError,
} from 'oauth4webapi';
import { expect, it, onTestFinished } from 'vitest';
import { startLocalEndpoint } from '../../../src/token/output/local-endpoint.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { heldTokens } from './held-tokens.ts';

async function start() {
  const clock = new ManualClock();
  const tokens = heldTokens(clock);
  const endpoint = await startLocalEndpoint({
    listen: { host: '127.0.0.1', port: 0 },
    tokens: [{ source: tokens.source, scope: 'read write' }],
    clock,
    log: captureLog().log,
  });
  onTestFinished(() => endpoint.close());
  const issuer = `http://127.0.0.1:${endpoint.address.port}`;
  const server = { issuer, token_endpoint: `${issuer}/token/kafka` };
  const client = { client_id: 'any' };

  async function grant(parameters: Readonly<Record<string, string>> = {}) {
    const answer = await clientCredentialsGrantRequest(
      server,
      client,
      ClientSecretBasic('any'),
      new URLSearchParams(parameters),
      { [allowInsecureRequests]: true },
    );
    return await processClientCredentialsResponse(server, client, answer);
  }
  return { tokens, grant };
}

it('an OAuth library accepts the token for its lifetime', async () => {
  const { tokens, grant } = await start();
  tokens.give('abc', 213_500);
  for (const parameters of [{}, { scope: 'read' }]) {
    expect(await grant(parameters)).toEqual({
      access_token: 'abc',
      token_type: 'bearer',
      expires_in: 213,
      scope: 'read write',
    });
  }
});

it('an OAuth library is given no lifetime for a token without expiry', async () => {
  const { tokens, grant } = await start();
  tokens.give('abc', Number.POSITIVE_INFINITY);
  expect(await grant()).not.toHaveProperty('expires_in');
});

it('an OAuth library understands an error and does not take a 503 for a token', async () => {
  const { tokens, grant } = await start();
  await expect(grant()).rejects.toThrow(OperationProcessingError);
  tokens.give('abc', 60_000);
  await expect(grant({ scope: 'admin' })).rejects.toMatchObject({
    name: ResponseBodyError.name,
    status: 400,
    error: 'invalid_scope',
  });
});
