import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { answer, CHUNKED, chunk, get, LAST_CHUNK, ok, request } from './messages.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';
import { socketOfSidecar } from './sidecar-socket.ts';

describe('an answer that comes before the end of the request', () => {
  it('is passed on at once', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(answer(413, 'too much')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(`${request('POST', '/', ['Content-Length: 1000000'])}the beginning`);

    expect(await client.response()).toMatchObject({ status: 413, body: 'too much' });
  });

  it('is passed on when the upstream closes after it', async () => {
    const upstream = await startUpstream((arrived) => {
      arrived.answer(answer(401, 'who are you', 'Connection: close'));
      arrived.connection.end();
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(request('POST', '/', [CHUNKED]) + chunk('the beginning'));

    expect(await client.response()).toMatchObject({ status: 401, body: 'who are you' });
  });

  it('leaves the connection of the app either usable or closed, whatever the app sends next', async () => {
    const upstream = await startUpstream(
      inTurn((arrived) => arrived.answer(ok('early')), answering(ok('next'))),
    );
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(request('POST', '/', [CHUNKED]) + chunk(get('/smuggled')));
    expect((await client.response()).body).toBe('early');

    client.send(chunk(get('/smuggled')) + LAST_CHUNK + get('/next'));

    const next = await client.response().then(
      ({ body }) => body,
      async () => `closed by ${await client.closed()}`,
    );
    expect(next).toMatch(/^next$|^closed by /);
    expect(upstream.targets).not.toContain('/smuggled');
  });

  it('closes the connection when the rest of the request proves malformed while the answer is being sent', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok('early')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    await sidecar.fence();
    const accepted = socketOfSidecar(client);
    accepted.cork();
    client.send(request('POST', '/', [CHUNKED]));
    await until(() => accepted.writableLength > 0);
    client.send(get('/smuggled'));
    await sidecar.fence();

    accepted.uncork();

    expect((await client.response()).body).toBe('early');
    await client.closed();
    await sidecar.fence();
    expect(upstream.targets).not.toContain('/smuggled');
  });

  it('closes the connection when the rest of the request does not come within a second', async () => {
    const clock = new ManualClock();
    const upstream = await startUpstream((arrived) => arrived.answer(ok('early')));
    const sidecar = await startSidecar({ upstream, clock });
    const client = await sidecar.connect();
    client.send(request('POST', '/', [CHUNKED]) + chunk('some'));
    expect((await client.response()).body).toBe('early');
    client.send(chunk('more'));
    await sidecar.fence();

    await clock.advance(999);
    client.send(chunk('and more'));
    await sidecar.fence();
    await clock.advance(1);

    expect(await client.closed()).toBe('end');
  });

  it('does not leave an incomplete request on a pooled connection', async () => {
    const upstream = await startUpstream(
      inTurn((arrived) => arrived.answer(ok('early')), answering(ok('next'))),
    );
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(`${request('POST', '/', ['Content-Length: 100'])}some`);
    expect((await client.response()).body).toBe('early');
    client.destroy();
    await sidecar.idle();

    expect((await sidecar.exchange(get('/next'))).body).toBe('next');
    expect(upstream.requests[1]?.connection).not.toBe(upstream.requests[0]?.connection);
  });
});
