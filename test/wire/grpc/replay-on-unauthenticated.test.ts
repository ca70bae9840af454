import { describe, expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { FakeBearer, FIRST, renewable, SECOND } from '../fake-bearer.ts';
import { openChannel } from './channel.ts';
import { echo, type ServedCall, sidecarBefore, startService } from './service.ts';

/** Takes the second token alone. */
function picky(call: ServedCall): void | Promise<void> {
  return call.authorization === SECOND ? echo(call) : call.refuse(16);
}

describe('a gRPC answer of trailers only with UNAUTHENTICATED', () => {
  it('is not shown to the app: the call is sent again once with another token', async () => {
    const service = await startService(picky);
    const bearer = renewable();
    const sidecar = await sidecarBefore(service, { bearer });

    const { messages, trailers } = await (await openChannel(sidecar)).unary('one', { 'x-trace-bin': 'AAEC' });

    expect(messages).toEqual(['echo one']);
    expect(trailers['grpc-status']).toBe('0');
    expect(service.calls.map(({ authorization }) => authorization)).toEqual([FIRST, SECOND]);
    expect(service.calls.map(({ metadata }) => metadata['x-trace-bin'])).toEqual(['AAEC', 'AAEC']);
    expect([bearer.refused, bearer.accepts]).toEqual([[FIRST], [SECOND]]);
    await sidecar.idle();
    expect(await sidecar.metric('proxy_upstream_unauthorized_total', { route: 'api' })).toBe(1);
    expect(await sidecar.metric('proxy_replays_total', { route: 'api', result: 'success' })).toBe(1);
    expect(await sidecar.metric('proxy_grpc_calls_total', { grpc_status: '16' })).toBe(0);
    expect(await sidecar.metric('proxy_grpc_calls_total', { grpc_status: '0' })).toBe(1);
  });

  it('is passed on when the other token is refused too', async () => {
    const service = await startService((call) => call.refuse(16, 'who are you'));
    const bearer = renewable();
    const sidecar = await sidecarBefore(service, { bearer });

    const { trailersOnly, trailers } = await (await openChannel(sidecar)).unary('one');

    expect(trailersOnly).toBe(true);
    expect(trailers).toMatchObject({ 'grpc-status': '16', 'grpc-message': 'who are you' });
    expect(trailers['token-sidecar-error']).toBeUndefined();
    expect(service.calls).toHaveLength(2);
    expect([bearer.refused, bearer.accepts]).toEqual([[FIRST], []]);
    await sidecar.idle();
    expect(await sidecar.metric('proxy_replays_total', { result: 'failure' })).toBe(1);
  });

  it('is passed on when there is no other token', async () => {
    const service = await startService(picky);
    const sidecar = await sidecarBefore(service, { bearer: new FakeBearer() });
    const { trailersOnly, trailers } = await (await openChannel(sidecar)).unary('one');
    expect([trailersOnly, trailers['grpc-status']]).toEqual([true, '16']);
    expect(service.calls).toHaveLength(1);
  });

  it('is followed by a replay of what was sent while the call still sends', async () => {
    const service = await startService((call) => {
      if (call.authorization !== SECOND) {
        call.stream.once('data', () => call.refuse(16));
        return;
      }
      call.begin();
      call.stream.on('data', (piece: Buffer) => call.stream.write(piece));
      call.stream.on('end', () => call.finish(0));
    });
    const call = (await openChannel(await sidecarBefore(service, { bearer: renewable() }))).call();

    await call.send('one').came(1);
    const { messages, trailers } = await call.send('two').end().outcome;

    expect(messages).toEqual(['one', 'two']);
    expect(trailers['grpc-status']).toBe('0');
    expect(service.calls).toHaveLength(2);
  });

  it('is passed on when the call sent more than is kept, and the next call has a new token', async () => {
    const service = await startService((call) => {
      if (call.authorization === SECOND) return echo(call);
      call.stream.once('end', () => call.refuse(16)).resume();
      return undefined;
    });
    const channel = await openChannel(await sidecarBefore(service, { bearer: renewable() }));
    const { trailers } = await channel.unary('x'.repeat(2000));
    expect(trailers['grpc-status']).toBe('16');
    expect((await channel.unary('next')).messages).toEqual(['echo next']);
    expect(service.calls.map(({ authorization }) => authorization)).toEqual([FIRST, SECOND]);
  });

  it('is passed on when the route has retryOn401: false', async () => {
    const service = await startService(picky);
    const bearer = renewable();
    const channel = await openChannel(await sidecarBefore(service, { bearer, route: { retryOn401: false } }));
    expect((await channel.unary('one')).trailers['grpc-status']).toBe('16');
    expect([bearer.refused, service.calls.length]).toEqual([[], 1]);
  });

  it('does not affect other calls: an open stream keeps its token', async () => {
    const renewed = Promise.withResolvers<string>();
    const bearer = new FakeBearer({ replace: () => renewed.promise });
    const streams: ServedCall[] = [];
    const service = await startService((call) => {
      if (call.metadata[':path'] !== '/shop.Orders/Watch') return picky(call);
      streams.push(call);
      call.begin().send('first');
      return undefined;
    });
    const channel = await openChannel(await sidecarBefore(service, { bearer }));
    const watch = channel.call({}, '/shop.Orders/Watch').send('all').end();
    await watch.came(1);
    const other = channel.unary('one');
    await until(() => bearer.refused.length === 1);
    const [stream] = streams as [ServedCall];

    stream.send('amid the renewal');
    await watch.came(2);
    renewed.resolve(SECOND);
    expect((await other).messages).toEqual(['echo one']);
    stream.send('last').finish(0);

    const { messages, trailers, resetBy } = await watch.outcome;
    expect(messages).toEqual(['first', 'amid the renewal', 'last']);
    expect([trailers['grpc-status'], resetBy]).toEqual(['0', 0]);
    expect(streams).toHaveLength(1);
    expect(service.calls.map(({ authorization }) => authorization)).toEqual([FIRST, FIRST, SECOND]);
  });
});

describe('gRPC trailers with UNAUTHENTICATED after messages', () => {
  it('are passed on, and the next call has another token', async () => {
    const service = await startService(async (call) => {
      await call.messages();
      if (call.authorization === SECOND) call.begin().finish(0);
      else call.begin().send('some').finish(16);
    });
    const bearer = renewable();
    const sidecar = await sidecarBefore(service, { bearer });
    const channel = await openChannel(sidecar);

    const first = await channel.unary('one');
    expect(first.messages).toEqual(['some']);
    expect(first.trailers['grpc-status']).toBe('16');
    expect((await channel.unary('two')).trailers['grpc-status']).toBe('0');

    expect(service.calls.map(({ authorization }) => authorization)).toEqual([FIRST, SECOND]);
    expect([bearer.refused, bearer.accepts]).toEqual([[FIRST], [SECOND]]);
    await sidecar.idle();
    expect(await sidecar.metric('proxy_upstream_unauthorized_total')).toBe(1);
    expect(await sidecar.metric('proxy_replays_total')).toBe(0);
    expect(await sidecar.metric('proxy_grpc_calls_total', { grpc_status: '16' })).toBe(1);
  });
});

it('a 401 from a proxy in front of a gRPC service is replayed like any other', async () => {
  const service = await startService((call) => {
    if (call.authorization === SECOND) return echo(call);
    call.stream.respond({ ':status': 401, 'content-type': 'text/plain' });
    call.stream.end('who?');
    return undefined;
  });
  const { messages } = await (await openChannel(await sidecarBefore(service, { bearer: renewable() }))).unary(
    'one',
  );
  expect(messages).toEqual(['echo one']);
});
