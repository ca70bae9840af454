import { describe, expect, it } from 'vitest';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from './messages.ts';
import { startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('bytes are passed on as they come', () => {
  it.each([
    ['chunked', [CHUNKED], chunk],
    ['until the end of the connection', [], (data: string) => data],
  ])('for server-sent events, %s', async (_, fields, frame) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/events', 'Accept: text/event-stream'));
    const arrived = await upstream.request();

    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Type: text/event-stream', ...fields]));
    expect((await client.head()).value('content-type')).toBe('text/event-stream');
    for (const event of ['data: one\n\n', 'data: two\n\n', ': \n\n']) {
      arrived.answer(frame(event));
      await client.received.contains(event);
    }
  });

  it('for an answer of known length', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();

    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 6'], 'one'));
    await client.received.contains('one');
    arrived.answer('two');

    expect((await client.response()).body).toBe('onetwo');
  });

  it.each([
    ['chunked', [CHUNKED], chunk, LAST_CHUNK],
    ['of known length', ['Content-Length: 6'], (data: string) => data, ''],
  ])('for an upload, %s', async (_, fields, frame, end) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(request('POST', '/', fields));
    const arrived = await upstream.request();
    for (const part of ['one', 'two']) {
      client.send(frame(part));
      await arrived.connection.received.contains(part);
    }
    client.send(end);

    expect((await arrived.body()).text).toBe('onetwo');
    arrived.answer(ok('done'));
    expect((await client.response()).body).toBe('done');
  });

  it('for a conversation in which each side waits for the other', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(request('POST', '/', [CHUNKED]) + chunk('ping 0'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED]));

    for (let round = 0; round < 5; round += 1) {
      await arrived.connection.received.contains(`ping ${round}`);
      arrived.answer(chunk(`pong ${round}`));
      await client.received.contains(`pong ${round}`);
      client.send(chunk(`ping ${round + 1}`));
    }
    client.send(LAST_CHUNK);
    await arrived.body();
    arrived.answer(LAST_CHUNK);

    expect((await client.response()).body).toBe('pong 0pong 1pong 2pong 3pong 4');
  });
});
