import { once } from 'node:events';
import { constants } from 'node:http2';
import { expect, it } from 'vitest';
import { FIRST } from '../fake-bearer.ts';
import { overTls } from '../raw-upstream.ts';
import { openChannel } from './channel.ts';
import { echo, type ServedCall, sidecarBefore, startService } from './service.ts';

const { NGHTTP2_CANCEL } = constants;

it('a gRPC call gets its token, and its answer arrives whole', async () => {
  const service = await startService(echo);
  const sidecar = await sidecarBefore(service);
  const channel = await openChannel(sidecar);

  const outcome = await channel.unary('one');

  expect(outcome).toMatchObject({ httpStatus: 200, messages: ['echo one'], resetBy: 0, trailersOnly: false });
  expect(outcome.head['content-type']).toBe('application/grpc+proto');
  expect(outcome.trailers).toMatchObject({ 'grpc-status': '0' });
  expect(service.calls.map(({ authorization }) => authorization)).toEqual([FIRST]);
  await sidecar.idle();
  expect(await sidecar.metric('proxy_grpc_calls_total', { route: 'api', grpc_status: '0' })).toBe(1);
  const protocols = { protocol: 'h2', upstream_protocol: 'h2' };
  expect(await sidecar.metric('proxy_requests_by_protocol_total', protocols)).toBe(1);
});

it('gRPC metadata passes unchanged in both directions: binary, repeated, deadlines, encodings, te', async () => {
  const binary = ['AAEC/w', '3q2+7w=='];
  const service = await startService(async (call) => {
    await call.messages();
    call.begin({ 'x-head-bin': '//79' }).finish(0, {
      'x-end-bin': 'AP8=',
      'grpc-status-details-bin': 'CAU',
      'retry-after': 'tomorrow',
      date: 'of the order',
      'content-checksum': 'f00',
      'token-sidecar-error': 'draining',
    });
  });
  const channel = await openChannel(await sidecarBefore(service));

  const { head, trailers } = await channel.unary('one', {
    'grpc-timeout': '2500m',
    'grpc-encoding': 'identity',
    'grpc-accept-encoding': 'identity,gzip',
    'x-trace-bin': binary,
    'user-agent': 'grpc-test/1',
  });

  const [{ metadata, raw }] = service.calls as [ServedCall];
  expect(metadata).toMatchObject({
    te: 'trailers',
    'content-type': 'application/grpc',
    'grpc-timeout': '2500m',
    'grpc-encoding': 'identity',
    'grpc-accept-encoding': 'identity,gzip',
    'user-agent': 'grpc-test/1',
  });
  expect(raw.filter((_, at) => raw[at - 1] === 'x-trace-bin' && at % 2 === 1)).toEqual(binary);
  expect(head['x-head-bin']).toBe('//79');
  expect(trailers).toMatchObject({
    'x-end-bin': 'AP8=',
    'grpc-status-details-bin': 'CAU',
    'retry-after': 'tomorrow',
    date: 'of the order',
    'content-checksum': 'f00',
  });
  expect(trailers['token-sidecar-error']).toBeUndefined();
});

it('the protocol of the upstream is known after the first gRPC call', async () => {
  const service = await startService(echo);
  const sidecar = await sidecarBefore(service, overTls ? { route: { protocol: 'auto' } } : {});
  // In clear text nobody is asked: the route says it.
  expect([...sidecar.proxy.spoken()]).toEqual([['api', overTls ? undefined : 'h2']]);
  await (await openChannel(sidecar)).unary('one');
  expect([...sidecar.proxy.spoken()]).toEqual([['api', 'h2']]);
});

it('gRPC messages pass in both directions while both sides still send', async () => {
  const service = await startService((call) => {
    call.begin();
    call.stream.on('data', (piece: Buffer) => call.stream.write(piece));
    call.stream.on('end', () => call.finish(0));
  });
  const call = (await openChannel(await sidecarBefore(service))).call();
  for (let turn = 1; turn <= 5; turn++) {
    call.send(`turn ${turn}`);
    await call.came(turn);
  }
  const { messages, trailers } = await call.end().outcome;
  expect(messages).toEqual(['turn 1', 'turn 2', 'turn 3', 'turn 4', 'turn 5']);
  expect(trailers['grpc-status']).toBe('0');
});

it('a gRPC answer of trailers only arrives as such', async () => {
  const service = await startService((call) => call.refuse(5, 'no%20such order'));
  const sidecar = await sidecarBefore(service);
  const channel = await openChannel(sidecar);

  const { trailersOnly, trailers, messages } = await channel.unary('one');

  expect([trailersOnly, messages]).toEqual([true, []]);
  expect(trailers).toMatchObject({ 'grpc-status': '5', 'grpc-message': 'no%20such order' });
  await sidecar.idle();
  expect(await sidecar.metric('proxy_grpc_calls_total', { grpc_status: '5' })).toBe(1);
});

it.each(['before the answer', 'amid the answer'])(
  'a gRPC client that cancels %s cancels at the service',
  async (when) => {
    const arrived = Promise.withResolvers<ServedCall>();
    const service = await startService((call) => arrived.resolve(call));
    const sidecar = await sidecarBefore(service);
    const call = (await openChannel(sidecar)).call({ 'grpc-timeout': '1S' }).send('one');
    const served = await arrived.promise;
    const closed = once(served.stream, 'close');
    if (when === 'amid the answer') {
      served.begin().send('some');
      await call.came(1);
    }

    call.cancel();

    await closed;
    expect(served.stream.rstCode).toBe(NGHTTP2_CANCEL);
    await sidecar.idle();
    expect(await sidecar.metric('proxy_grpc_calls_total', { grpc_status: 'none' })).toBe(1);
    expect(await sidecar.metric('proxy_errors_total')).toBe(0);
  },
);

it('a gRPC service that cancels amid its answer, as at a deadline, cancels at the client', async () => {
  const service = await startService((call) => {
    call.begin().send('some');
    call.stream.on('data', () => call.stream.close(NGHTTP2_CANCEL));
  });
  const call = (await openChannel(await sidecarBefore(service))).call();
  await call.came(1);
  const { resetBy, messages, trailers } = await call.send('more').outcome;
  expect(resetBy).toBe(NGHTTP2_CANCEL);
  expect(messages).toEqual(['some']);
  expect(trailers).toEqual({});
});

it('a gRPC service that cancels before its answer gives the client CANCELLED', async () => {
  const service = await startService((call) => call.stream.close(NGHTTP2_CANCEL));
  const sidecar = await sidecarBefore(service);
  const { trailersOnly, trailers } = await (await openChannel(sidecar)).unary('one');
  expect(trailersOnly).toBe(true);
  expect(trailers).toMatchObject({ 'grpc-status': '1', 'token-sidecar-error': 'upstream_protocol_error' });
  expect(service.calls).toHaveLength(1);
});
