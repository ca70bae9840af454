/** What the sidecar refuses by its own rules, as a gRPC client that knows nothing of it sees that. */

import { describe, expect, it } from 'vitest';
import { type Answer, call, converse } from './client.ts';
import { CLIENTS_WITH_SERVERS, OTHER_SERVERS } from './programs.ts';
import { startSurroundings } from './surroundings.ts';

const OK = 0;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;

const OWN = 'Bearer of the app itself';

const [program] = OTHER_SERVERS;
const plain = { upstream: 'plain', ...(program === undefined ? {} : { program }) } as const;

describe.each(CLIENTS_WITH_SERVERS)('$name', (client) => {
  it('a call with an authorization of its own, where the route refuses those', async () => {
    const { server, sidecar } = await startSurroundings({
      ...plain,
      route: { existingAuthorization: 'reject' },
    });

    const answer = await call(client, sidecar.address, 'own', OWN);

    expect(answer.code).toBe(PERMISSION_DENIED);
    expect(sidecarError(answer)).toBe('authorization_not_allowed');
    expect(JSON.stringify(answer)).not.toContain('app itself');
    expect(await call(client, sidecar.address, 'once', 'hello')).toMatchObject({ code: OK });
    expect(server.calls.filter(({ authorization }) => authorization.includes(OWN))).toEqual([]);
  });

  it('one call more than may be in flight', async () => {
    const { sidecar } = await startSurroundings({ ...plain, settings: { limits: { inFlight: 1 } } });
    const conversation = converse(client, sidecar.address);
    expect(await conversation.say('hello')).toBe('hello');

    const answer = await call(client, sidecar.address, 'once', 'too many');

    expect(answer.code).toBe(RESOURCE_EXHAUSTED);
    expect(sidecarError(answer)).toBe('overloaded');
    expect(await conversation.say('still there?')).toBe('still there?');
    expect(await conversation.end()).toMatchObject({ code: OK });
  });
});

function sidecarError({ initial, trailing }: Answer): string | undefined {
  return trailing['token-sidecar-error'] ?? initial['token-sidecar-error'];
}
