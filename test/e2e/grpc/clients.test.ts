/** Real, unmodified gRPC clients that know nothing but an address, and a real gRPC server behind the sidecar. */

import { describe, expect, it } from 'vitest';
import { type Answer, call, converse } from './client.ts';
import { CLIENTS } from './programs.ts';
import { bearer, startSurroundings, type UpstreamKind } from './surroundings.ts';

const OK = 0;
const CANCELLED = 1;
const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

const MESSAGE_BYTES = 4 << 20;
const STREAMS = 1000;

/** Of one connection, where fewer are allowed unless it is said. */
const MANY_STREAMS = { limits: { http2: { streams: STREAMS } } };
const RENEWALS = 10;

const METADATA = { 'echo-text': 'some text', 'echo-bin': '00ff802c0a' };

describe.each<UpstreamKind>(['plain', 'TLS'])('a %s upstream', (upstream) => {
  describe.each(CLIENTS)('$name', (client) => {
    it.each([
      { kind: 'a unary call', command: 'once', replies: ['one two three'] },
      { kind: 'a stream of replies', command: 'split', replies: ['one', 'two', 'three'] },
      { kind: 'a stream of requests', command: 'join', replies: ['one two three'] },
    ] as const)('$kind carries the token, and metadata comes back', async ({ command, replies }) => {
      const { server, sidecar } = await startSurroundings({ upstream });
      const answer = await call(client, sidecar.address, command, 'one two three');
      expect(answer).toMatchObject({ code: OK, replies, initial: METADATA, trailing: METADATA });
      expect(server.calls).toEqual([
        { method: expect.any(String), authorization: [bearer(1)], status: 'OK' },
      ]);
    });

    it('both streams of a call flow at once', async () => {
      const { sidecar } = await startSurroundings({ upstream });
      const conversation = converse(client, sidecar.address);
      expect(await conversation.say('hello')).toBe('hello');
      expect(await conversation.say('still there?')).toBe('still there?');
      expect(await conversation.end()).toMatchObject({ code: OK, initial: METADATA, trailing: METADATA });
    });

    it('a message of 4 MB goes and comes', async () => {
      const { sidecar } = await startSurroundings({ upstream });
      const answer = await call(client, sidecar.address, 'large', String(MESSAGE_BYTES));
      expect(answer).toMatchObject({ code: OK, replies: [String(MESSAGE_BYTES)] });
    });

    it('1,000 streams are open at once', async () => {
      const { server, sidecar } = await startSurroundings({ upstream, settings: MANY_STREAMS });
      const answer = await call(client, sidecar.address, 'many', String(STREAMS));
      expect(answer).toMatchObject({ code: OK, replies: [String(STREAMS)] });
      const authorizations = new Set(server.calls.map(({ authorization }) => authorization.join()));
      expect([...authorizations]).toEqual([bearer(1)]);
    });

    it('a deadline passes on both sides', async () => {
      const { server, sidecar } = await startSurroundings({ upstream });
      const answer = await call(client, sidecar.address, 'deadline', '300');
      // A server in Go whose clock is first resets the call with CANCEL, and grpc-js says so, with and without a sidecar.
      expect([DEADLINE_EXCEEDED, CANCELLED]).toContain(answer.code);
      await server.until((calls) => calls.length === 2);
      expect(server.calls[1]?.method).toBe('Hang');
      // Which of the two ends it there, its own clock or the client's reset, is a matter of who is first.
      expect(server.calls[1]?.status).toMatch(/^(DeadlineExceeded|Canceled)$/);
    });

    it('the server hears of a call that is cancelled', async () => {
      const { server, sidecar } = await startSurroundings({ upstream });
      const answer = await call(client, sidecar.address, 'cancel', 'hello');
      expect(answer).toMatchObject({ code: CANCELLED, replies: ['hello'] });
      await server.until((calls) => calls.length === 1);
      expect(server.calls[0]).toMatchObject({ method: 'Linger', status: 'Canceled' });
    });

    it("the server's own failures arrive as they are", async () => {
      const { sidecar } = await startSurroundings({ upstream });
      const answer = await call(client, sidecar.address, 'fail', String(INVALID_ARGUMENT));
      expect(answer).toMatchObject({ code: INVALID_ARGUMENT, message: 'as asked for: 100 % ☂' });
      expect(sidecarError(answer)).toBeUndefined();
    });

    it('a call that is refused for its token is made again with a new one', async () => {
      const { server, sidecar } = await startSurroundings({ upstream, revokedToken: 1 });
      expect(await call(client, sidecar.address, 'once', 'hello')).toMatchObject({ code: OK });
      const answer = await call(client, sidecar.address, 'once', 'hello again');
      expect(answer).toMatchObject({ code: OK, replies: ['hello again'] });
      expect(server.calls.map(({ authorization, status }) => [...authorization, status])).toEqual([
        [bearer(1), 'OK'],
        [bearer(1), 'Unauthenticated'],
        [bearer(2), 'OK'],
      ]);
    });

    it('a call that is open when the sidecar is told to stop comes to its end', async () => {
      const { sidecar } = await startSurroundings({ upstream });
      const conversation = converse(client, sidecar.address);
      expect(await conversation.say('hello')).toBe('hello');
      const stopped = sidecar.stop();
      expect(await conversation.say('still there?')).toBe('still there?');
      expect(await conversation.end()).toMatchObject({ code: OK, replies: ['hello', 'still there?'] });
      await stopped;
    });

    describe('the sidecar refuses a call', () => {
      it('for want of a token', async () => {
        const { server, sidecar } = await startSurroundings({
          upstream,
          provider: 'refuses',
          credential: { timeouts: { wait: '100ms' } },
        });
        const answer = await call(client, sidecar.address, 'once', 'hello');
        expect(answer.code).toBe(UNAVAILABLE);
        expect(sidecarError(answer)).toBe('token_unavailable');
        expect(server.calls).toEqual([]);
      });

      it('that no route matches', async () => {
        const { sidecar } = await startSurroundings({ upstream, route: { match: { pathPrefix: '/other' } } });
        const answer = await call(client, sidecar.address, 'once', 'hello');
        expect(answer.code).toBe(UNIMPLEMENTED);
        expect(sidecarError(answer)).toBe('route_not_found');
      });

      it('whose upstream is not there', async () => {
        const { sidecar } = await startSurroundings({
          upstream,
          // The discard service, which nobody runs.
          route: { upstream: `${upstream === 'TLS' ? 'https' : 'http'}://127.0.0.1:9` },
        });
        const answer = await call(client, sidecar.address, 'once', 'hello');
        expect(answer.code).toBe(UNAVAILABLE);
        expect(sidecarError(answer)).toBe('upstream_unreachable');
      });

      it('that the upstream does not answer in time', async () => {
        const { server, sidecar } = await startSurroundings({
          upstream,
          route: { timeouts: { response: '200ms' } },
        });
        const answer = await call(client, sidecar.address, 'deadline', '60000');
        expect(answer.code).toBe(DEADLINE_EXCEEDED);
        expect(sidecarError(answer)).toBe('upstream_timeout');
        await server.until((calls) => calls.length === 2);
        expect(server.calls[1]).toMatchObject({ method: 'Hang', status: 'Canceled' });
      });
    });
  });

  it('streams of all clients live across ten renewals of the token', async () => {
    const { endpoint, server, sidecar } = await startSurroundings({ upstream, tokenLifetimeSeconds: 2 });
    const conversations = CLIENTS.map((client) => converse(client, sidecar.address));
    for (let renewal = 1; renewal <= RENEWALS; renewal++) {
      await Promise.all(
        conversations.map(async ({ say }) =>
          expect(await say(`renewal ${renewal}`)).toBe(`renewal ${renewal}`),
        ),
      );
      await endpoint.requests(endpoint.received.length + 1);
    }
    const answers = await Promise.all(conversations.map(({ end }) => end()));
    expect(answers.map(({ code, replies }) => [code, replies.length])).toEqual(
      CLIENTS.map(() => [OK, RENEWALS]),
    );
    expect(server.calls.map(({ status }) => status)).toEqual(CLIENTS.map(() => 'OK'));
    expect(endpoint.received.length).toBeGreaterThan(RENEWALS);
  });
});

/** The sidecar's own refusal says so; an answer of the server never does. */
function sidecarError({ initial, trailing }: Answer): string | undefined {
  return trailing['token-sidecar-error'] ?? initial['token-sidecar-error'];
}
