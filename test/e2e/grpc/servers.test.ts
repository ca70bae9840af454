/** Servers of other gRPC libraries than grpc-go behind the sidecar: each frames, fails and refuses in its own way. */

import { describe, expect, it } from 'vitest';
import { call, converse } from './client.ts';
import { CLIENTS_WITH_SERVERS, OTHER_SERVERS } from './programs.ts';
import { bearer, startSurroundings, type UpstreamKind } from './surroundings.ts';

const OK = 0;
const CANCELLED = 1;
const INVALID_ARGUMENT = 3;

const MESSAGE_BYTES = 4 << 20;
const METADATA = { 'echo-text': 'some text', 'echo-bin': '00ff802c0a' };

describe.each(OTHER_SERVERS)('a server of $name', (program) => {
  describe.each<UpstreamKind>(['plain', 'TLS'])('%s', (upstream) => {
    describe.each(CLIENTS_WITH_SERVERS)('asked by $name', (client) => {
      it.each([
        { kind: 'a unary call', command: 'once', replies: ['one two three'] },
        { kind: 'a stream of replies', command: 'split', replies: ['one', 'two', 'three'] },
        { kind: 'a stream of requests', command: 'join', replies: ['one two three'] },
      ] as const)('$kind carries the token, and metadata comes back', async ({ command, replies }) => {
        const { server, sidecar } = await startSurroundings({ upstream, program });
        const answer = await call(client, sidecar.address, command, 'one two three');
        expect(answer).toMatchObject({ code: OK, replies, initial: METADATA, trailing: METADATA });
        await server.until((calls) => calls.length === 1);
        expect(server.calls[0]).toMatchObject({ authorization: [bearer(1)], status: 'OK' });
      });

      it('both streams of a call flow at once', async () => {
        const { sidecar } = await startSurroundings({ upstream, program });
        const conversation = converse(client, sidecar.address);
        expect(await conversation.say('hello')).toBe('hello');
        expect(await conversation.say('still there?')).toBe('still there?');
        expect(await conversation.end()).toMatchObject({ code: OK, initial: METADATA, trailing: METADATA });
      });

      it('a message of 4 MB goes and comes', async () => {
        const { sidecar } = await startSurroundings({ upstream, program });
        const answer = await call(client, sidecar.address, 'large', String(MESSAGE_BYTES));
        expect(answer).toMatchObject({ code: OK, replies: [String(MESSAGE_BYTES)] });
      });

      it('a call that is refused for its token is made again with a new one', async () => {
        const { server, sidecar } = await startSurroundings({ upstream, program, revokedToken: 1 });
        expect(await call(client, sidecar.address, 'once', 'hello')).toMatchObject({ code: OK });
        const answer = await call(client, sidecar.address, 'once', 'hello again');
        expect(answer).toMatchObject({ code: OK, replies: ['hello again'] });
        await server.until((calls) => calls.length === 3);
        expect(server.calls.map(({ authorization, status }) => [...authorization, status])).toEqual([
          [bearer(1), 'OK'],
          [bearer(1), 'Unauthenticated'],
          [bearer(2), 'OK'],
        ]);
      });

      it('so is a call that streams replies', async () => {
        const { server, sidecar } = await startSurroundings({ upstream, program, revokedToken: 1 });
        await call(client, sidecar.address, 'once', 'hello');
        const answer = await call(client, sidecar.address, 'split', 'one two');
        expect(answer).toMatchObject({ code: OK, replies: ['one', 'two'] });
        await server.until((calls) => calls.length === 3);
        expect(server.calls.map(({ status }) => status)).toEqual(['OK', 'Unauthenticated', 'OK']);
      });

      it("the server's own failures arrive as they are", async () => {
        const { sidecar } = await startSurroundings({ upstream, program });
        const answer = await call(client, sidecar.address, 'fail', String(INVALID_ARGUMENT));
        expect(answer).toMatchObject({ code: INVALID_ARGUMENT, message: 'as asked for: 100 % ☂' });
      });

      it('the server hears of a call that is cancelled', async () => {
        const { server, sidecar } = await startSurroundings({ upstream, program });
        const answer = await call(client, sidecar.address, 'cancel', 'hello');
        expect(answer).toMatchObject({ code: CANCELLED, replies: ['hello'] });
        await server.until((calls) => calls.length === 1);
        expect(server.calls[0]).toMatchObject({ method: 'Linger', status: 'Canceled' });
      });
    });
  });
});
