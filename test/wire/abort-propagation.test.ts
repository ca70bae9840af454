import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST } from './fake-bearer.ts';
import { CHUNKED, chunk, get, message, ok, request } from './messages.ts';
import { startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('when the app goes away', () => {
  // A process that dies closes with a FIN, or with a reset when it left bytes unread: both say that it is gone.
  it.each([
    ['with a FIN', 'destroy'],
    ['with a reset', 'resetAndDestroy'],
  ] as const)('%s before the answer, the upstream request is aborted', async (_, how) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();

    client.socket[how]();

    await arrived.connection.closed();
    await sidecar.idle();
  });

  it.each([
    ['chunked', request('POST', '/', [CHUNKED]) + chunk('some')],
    ['of known length', `${request('POST', '/', ['Content-Length: 100'])}some`],
  ])('amid an upload %s, the upstream does not take the body for complete', async (_, bytes) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(bytes);
    const arrived = await upstream.request();
    await arrived.connection.received.contains('some');

    client.destroy();

    await arrived.connection.closed();
    await expect(arrived.body()).rejects.toThrow();
    await sidecar.idle();
  });

  it('amid an upload after ending its side, the upstream does not take the body for complete', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(request('POST', '/', [CHUNKED]) + chunk('some'));
    const arrived = await upstream.request();
    await arrived.connection.received.contains('some');

    client.end();

    await arrived.connection.closed();
    await expect(arrived.body()).rejects.toThrow();
    await client.closed();
  });

  it('amid the answer, the upstream connection is cut', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('first')));
    await client.received.contains('first');

    client.destroy();

    await arrived.connection.closed();
    await sidecar.idle();
  });

  it('while it waits for a silent answer, this is noticed without a byte from the upstream', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/events'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', ['Content-Type: text/event-stream', CHUNKED]));
    await client.head();

    client.destroy();

    await arrived.connection.closed();
  });

  it('while its request waits for a token, nothing is sent upstream once the token is there', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok()));
    const granted = Promise.withResolvers<string>();
    const asked = Promise.withResolvers<void>();
    const bearer = new FakeBearer({
      held: undefined,
      obtain: () => {
        asked.resolve();
        return granted.promise;
      },
    });
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();
    client.send(get('/left'));
    await asked.promise;

    client.destroy();
    // Freed at once, not when the token comes.
    await sidecar.idle();
    bearer.held = FIRST;
    granted.resolve(FIRST);

    await sidecar.fence();
    expect(upstream.targets).toEqual(['/fence']);
  });

  it('with requests still pipelined, these are not sent', async () => {
    const upstream = await startUpstream((arrived) => {
      if (arrived.head.target === '/fence') arrived.answer(ok());
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(get('/1') + get('/2'));
    const arrived = await upstream.request();

    client.destroy();
    await arrived.connection.closed();
    await sidecar.idle();

    await sidecar.fence();
    expect(upstream.targets.filter((target) => target === '/1')).toHaveLength(1);
  });
});

describe('when the upstream goes away', () => {
  it.each([
    ['with a FIN', 'end'],
    ['with a reset', 'reset'],
  ] as const)(
    '%s amid the answer, the app sees that the answer is incomplete and its next request is served',
    async (_, how) => {
      const upstream = await startUpstream((arrived) => {
        if (arrived.head.target === '/fence') arrived.answer(ok('fine'));
      });
      const sidecar = await startSidecar({ upstream });
      const client = await sidecar.connect();
      client.send(get('/'));
      const arrived = await upstream.request();
      arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 100'], 'some'));
      await client.received.contains('some');

      arrived.connection[how]();

      await client.closed();
      expect(client.received.text.endsWith('some')).toBe(true);
      await sidecar.idle();
      expect((await sidecar.fence()).body).toBe('fine');
    },
  );

  it('amid an upload, the app gets 502 or its connection is closed, and it never hangs', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(request('POST', '/', [CHUNKED]) + chunk('some'));
    const arrived = await upstream.request();

    arrived.connection.reset();

    const answer = await client.response();
    expect([answer.status, answer.head.value('token-sidecar-error')]).toEqual([
      502,
      'upstream_protocol_error',
    ]);
    await sidecar.idle();
  });
});
