import { expect, it } from 'vitest';
import { withoutToken } from '../fake-bearer.ts';
import { HTTP2 } from '../http2-upstream/node-upstream.ts';
import { routeTo, startSidecar } from '../sidecar.ts';
import { openChannel } from './channel.ts';
import { echo, sidecarBefore, startService } from './service.ts';

it('a gRPC call without a token gets UNAVAILABLE with the time to retry', async () => {
  const service = await startService(echo);
  const sidecar = await sidecarBefore(service, { bearer: withoutToken() });

  const { httpStatus, trailersOnly, trailers } = await (await openChannel(sidecar)).unary('one');

  expect([httpStatus, trailersOnly]).toEqual([200, true]);
  expect(trailers).toMatchObject({
    'content-type': 'application/grpc',
    'grpc-status': '14',
    'grpc-retry-pushback-ms': '7000',
    'token-sidecar-error': 'token_unavailable',
  });
  expect(decodeURIComponent(trailers['grpc-message'] as string)).toBe('no token is to be had in this test');
  expect(service.calls).toEqual([]);
  await sidecar.idle();
  expect(await sidecar.metric('proxy_grpc_calls_total', { route: 'api', grpc_status: '14' })).toBe(1);
  expect(await sidecar.metric('proxy_requests_total', { route: 'api', method: 'POST', code: '200' })).toBe(1);
  expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'token_unavailable' })).toBe(1);
});

it('a gRPC call without a route is answered while it still sends; other streams go on', async () => {
  const service = await startService(echo);
  const sidecar = await sidecarBefore(service, { route: { match: { pathPrefix: '/shop.Orders' } } });
  const channel = await openChannel(sidecar);
  const open = channel.call({}, '/shop.Stock/Watch').send('one');

  const { trailersOnly, trailers, resetBy } = await open.outcome;

  expect([trailersOnly, resetBy]).toEqual([true, 0]);
  expect(trailers).toMatchObject({ 'grpc-status': '12', 'token-sidecar-error': 'route_not_found' });
  expect((await channel.unary('two')).messages).toEqual(['echo two']);
  expect(await sidecar.metric('proxy_grpc_calls_total', { route: 'none', grpc_status: '12' })).toBe(1);
});

it('a gRPC call to an unreachable upstream gets UNAVAILABLE', async () => {
  const nobody = { host: '127.0.0.1', port: 1 };
  const sidecar = await startSidecar({ routes: [routeTo({ address: nobody }, { protocol: 'h2c' })] });
  const { trailers } = await (await openChannel(sidecar)).unary('one');
  expect(trailers).toMatchObject({ 'grpc-status': '14', 'token-sidecar-error': 'upstream_unreachable' });
});

it('the log has the gRPC statuses that clients got', async () => {
  const nobody = { host: '127.0.0.1', port: 1 };
  const sidecar = await startSidecar({ routes: [routeTo({ address: nobody }, { protocol: 'h2c' })] });

  await (await openChannel(sidecar)).unary('one');

  const [line = '{}'] = sidecar.logLines.filter((logged) => logged.includes('"request not completed"'));
  expect(JSON.parse(line)).toMatchObject({ error: 'upstream_unreachable', status: 200, grpcStatus: 14 });
});

it('a gRPC call to a route with protocol http1 fails, and the log says which setting to change', async () => {
  const service = await startService(echo);
  const sidecar = await sidecarBefore(service, { route: { protocol: 'http1' } });

  const { trailers } = await (await openChannel(sidecar)).unary('one');

  expect(trailers).toMatchObject({ 'grpc-status': '14', 'token-sidecar-error': 'upstream_protocol_error' });
  expect(service.calls).toEqual([]);
  const [line = '{}'] = sidecar.logLines.filter((logged) => logged.includes('"request not completed"'));
  expect(JSON.parse(line)).toMatchObject({
    level: 'warn',
    route: 'api',
    error: 'upstream_protocol_error',
    reason: expect.stringContaining(
      `is spoken to in HTTP/1.1, by which gRPC cannot be carried: protocol: ${HTTP2} is for`,
    ),
    status: 200,
    grpcStatus: 14,
  });
});

it('a gRPC call whose answer comes too late gets DEADLINE_EXCEEDED', async () => {
  const service = await startService(() => {});
  const sidecar = await sidecarBefore(service, { route: { timeouts: { responseMs: 50 } } });
  const { trailers } = await (await openChannel(sidecar)).unary('one');
  expect(trailers).toMatchObject({ 'grpc-status': '4', 'token-sidecar-error': 'upstream_timeout' });
});

it('a gRPC call with a request larger than allowed gets RESOURCE_EXHAUSTED amid its messages', async () => {
  const service = await startService((call) => void call.stream.resume());
  const sidecar = await sidecarBefore(service, { limits: { requestBodyBytes: 1000 } });
  const call = (await openChannel(sidecar)).call().send('x'.repeat(600)).send('x'.repeat(600));
  const { trailers, resetBy } = await call.outcome;
  expect(trailers).toMatchObject({ 'grpc-status': '8', 'token-sidecar-error': 'request_too_large' });
  expect(resetBy).toBe(0);
});

it('a gRPC call with too large a head or path gets RESOURCE_EXHAUSTED', async () => {
  const service = await startService(echo);
  const channel = await openChannel(
    await sidecarBefore(service, { limits: { headerBytes: 2000, targetBytes: 100 } }),
  );
  const long = await channel.unary('one', { 'x-long': 'x'.repeat(8000) });
  expect(long.trailers).toMatchObject({ 'grpc-status': '8', 'token-sidecar-error': 'headers_too_large' });
  const path = await channel.unary('one', {}, `/${'x'.repeat(200)}`);
  expect(path.trailers).toMatchObject({ 'grpc-status': '8', 'token-sidecar-error': 'uri_too_long' });
});

it('gRPC-Web and other HTTP/2 requests get a problem, not a gRPC status', async () => {
  const service = await startService(echo);
  const channel = await openChannel(await sidecarBefore(service, { bearer: withoutToken() }));
  for (const type of ['application/grpc-web+proto', 'application/json']) {
    const { httpStatus, head } = await channel.unary('one', { 'content-type': type });
    expect([httpStatus, head['content-type']]).toEqual([503, 'application/problem+json']);
  }
});

it('a gRPC call that fails after its answer began is reset without a status of the sidecar', async () => {
  const service = await startService((call) => {
    call.begin().send('some');
    call.stream.on('data', () => call.stream.session?.destroy());
  });
  const sidecar = await sidecarBefore(service, { route: { protocol: HTTP2 } });
  const call = (await openChannel(sidecar)).call();
  await call.came(1);
  const { resetBy, trailers } = await call.send('more').outcome;
  expect(resetBy).toBe(2);
  expect(trailers).toEqual({});
  await sidecar.idle();
  expect(await sidecar.metric('proxy_grpc_calls_total', { grpc_status: 'none' })).toBe(1);
});
