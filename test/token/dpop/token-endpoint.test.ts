/** What real providers' tests do not show: nonces that are good once, many grants at once, and answers of others in between. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { decodeJwt } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import type { CredentialSettings } from '../../../src/config/config.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { createTokenEndpoint } from '../../../src/token/provider/token-endpoint.ts';
import { credentialConfig } from '../../support/credential-config.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';

const CLIENT = {
  method: 'client_secret_basic',
  encoding: 'form',
  clientId: 'shop',
  clientSecret: 'secret',
} as const;

type Script = Parameters<typeof ScriptedTokenEndpoint.start>[0];

const DPOP = { allowsBearer: false };

/** @param grants for requests that bring tokens, several at once. */
async function start(script: Script, grants: Partial<CredentialSettings> = {}) {
  const provider = await ScriptedTokenEndpoint.start(script);
  const config = credentialConfig({ tokenUrl: provider.url, dpop: DPOP, ...grants });
  const endpoint = createTokenEndpoint(config, systemClock);
  onTestFinished(() => endpoint.close());
  let number = 0;
  return {
    provider,
    ask: () =>
      endpoint.requestToken(CLIENT, new AbortController().signal, { subject: `subject-${number++}` }),
  };
}

function claimsOf({ headers }: IncomingMessage) {
  return decodeJwt(String(headers['dpop']));
}

const bound = answerToken({ token_type: 'DPoP' });

it('many grants at once get their tokens where each nonce is good for one request', async () => {
  const usable = new Set<unknown>();
  const subjectTokenType = 'urn:ietf:params:oauth:token-type:access_token';
  const { ask, provider } = await start(
    (response, request) => {
      const isRight = usable.delete(claimsOf(request)['nonce']);
      const nonce = randomUUID();
      usable.add(nonce);
      response.setHeader('dpop-nonce', nonce);
      if (isRight) bound(response, request);
      else answer(400, '{"error":"use_dpop_nonce"}')(response, request);
    },
    { grant: { type: 'token_exchange', subjectTokenType } },
  );
  for (let round = 0; round < 2; round++) {
    const outcomes = await Promise.all(Array.from({ length: 8 }, ask));
    expect(outcomes.map(({ result }) => result)).toEqual(outcomes.map(() => 'success'));
  }
  expect(provider.received.length).toBeLessThanOrEqual(32);
});

it('a provider that wants another nonce each time is asked twice, and does not count as rejecting the client', async () => {
  const { ask, provider } = await start((response, request) => {
    response.setHeader('dpop-nonce', randomUUID());
    answer(401, '{"error":"use_dpop_nonce"}')(response, request);
  });
  expect(await ask()).toMatchObject({ result: 'unavailable', detail: 'status 401 use_dpop_nonce' });
  expect(provider.received).toHaveLength(2);
});

it.each([
  ['a page of a proxy in front', '<html>', 0],
  ['the provider', '{"error":"server_error"}', -3600],
])('the Date of %s (%s) moves the time of proofs by %i s', async (_, body, seconds) => {
  const times: number[] = [];
  const { ask } = await start((response, request) => {
    times.push(Number(claimsOf(request).iat));
    response.setHeader('date', new Date(Date.now() - 3600_000).toUTCString());
    answer(502, body)(response, request);
  });
  await ask();
  await ask();
  const [first = 0, second = 0] = times;
  expect(Math.abs(second - first - seconds)).toBeLessThanOrEqual(2);
});
