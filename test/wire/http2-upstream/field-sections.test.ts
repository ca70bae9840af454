import { expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { connectHttp2, requestFields } from '../http2/raw-http2-client.ts';
import { get, message } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { startSidecar } from '../sidecar.ts';
import { MAX_HEADER_LIST_SIZE, startFrames, TYPE } from './frame-upstream.ts';
import { HTTP2 } from './node-upstream.ts';

const MAX_BYTES = 1_000;

/** An upstream that takes heads of so many octets, and has said so. */
async function start(mostBytes = MAX_BYTES) {
  const upstream = await startFrames((connection) => connection.settings([MAX_HEADER_LIST_SIZE, mostBytes]));
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  const warm = sidecar.exchange(get('/warm'));
  const connection = await upstream.connection();
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'warm');
  await warm;
  await until(() => connection.all(TYPE.SETTINGS).length > 0);
  return { upstream, sidecar, connection };
}

it('a request with more fields than the upstream accepts is answered with an error, and none of it is sent', async () => {
  const { upstream, sidecar, connection } = await start();

  const response = await sidecar.exchange(get('/big', `X-Big: ${'b'.repeat(MAX_BYTES)}`));

  expectProblem(response, 'headers_too_large');
  expect(response.body).toContain(
    `takes at most ${MAX_BYTES} octets of fields (SETTINGS_MAX_HEADER_LIST_SIZE)`,
  );
  const small = sidecar.exchange(get('/small'));
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'small');
  expect((await small).body).toBe('small');
  expect(connection.all(TYPE.HEADERS)).toHaveLength(2);
  expect(upstream.connections).toHaveLength(1);
});

it('the token and an overhead of 32 octets a field count towards the upstream’s limit of fields', async () => {
  const { sidecar } = await start(200);
  const response = await sidecar.exchange(get('/'));
  expectProblem(response, 'headers_too_large');
});

it('a gRPC call with more fields than the upstream accepts gets a gRPC status', async () => {
  const { sidecar, connection } = await start();
  const client = await connectHttp2(sidecar);
  const fields = ['content-type', 'application/grpc', 'te', 'trailers', 'x-big', 'b'.repeat(MAX_BYTES)];

  const { head } = await client.answer(
    client.request(requestFields('POST', '/pkg.Service/Method', ...fields)),
  );

  expect(head?.value('grpc-status')).toBe('8');
  expect(head?.value('token-sidecar-error')).toBe('headers_too_large');
  expect(connection.all(TYPE.HEADERS)).toHaveLength(1);
});

it('trailers that are too large reset their request, and the connection goes on', async () => {
  const { sidecar, connection } = await start();
  const client = await sidecar.connect();
  client.send(message('POST /upload HTTP/1.1', ['Host: app.test', 'Transfer-Encoding: chunked']));
  const { streamId } = await connection.next(TYPE.HEADERS);
  client.send(`2\r\nok\r\n0\r\nX-Big: ${'b'.repeat(MAX_BYTES)}\r\n\r\n`);

  expectProblem(await client.response(), 'headers_too_large');

  expect((await connection.next(TYPE.RST_STREAM)).streamId).toBe(streamId);
  const small = sidecar.exchange(get('/small'));
  connection.answer((await connection.next(TYPE.HEADERS)).streamId, 'small');
  expect((await small).body).toBe('small');
});
