/** What requests that one app cancels cost the others whose requests share its connection to the upstream. */

import { expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { Code, reset } from '../http2/frames.ts';
import { connectHttp2 } from '../http2/raw-http2-client.ts';
import { startSidecar } from '../sidecar.ts';
import { type Answering, HTTP2, startHttp2 } from './node-upstream.ts';

const AT_ONCE = 20;
const ROUNDS = 30;

/** Node's server with what Netty, and so grpc-java, allows: 200 resets in 30 s, then the connection ends for everybody. */
const LIKE_NETTY = { streamResetBurst: 200, streamResetRate: 6 };

/** What is not answered is there to be cancelled. */
const answerShort: Answering = ({ stream, headers }) => {
  if (headers[':path'] === '/short') stream.respond({ ':status': 204 }, { endStream: true });
  if (headers[':path'] === '/lasting') stream.respond({ ':status': 200 });
};

it('while one app cancels three times as many requests as the server allows, all others are answered on few extra connections', async () => {
  const upstream = await startHttp2(answerShort, {}, LIKE_NETTY);
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
  const hasty = await connectHttp2(sidecar);
  const other = await connectHttp2(sidecar);
  const lasting = other.get('/lasting');
  await other.head(lasting);
  const begun = () => upstream.arrived.filter(({ headers }) => headers[':path'] === '/slow').length;

  for (let round = 1; round <= ROUNDS; round++) {
    const slow = Array.from({ length: AT_ONCE }, () => hasty.get('/slow'));
    await until(() => begun() === round * AT_ONCE);
    hasty.send(...slow.map((streamId) => reset(streamId, Code.CANCEL)));
    expect((await other.answer(other.get('/short'))).status).toBe(204);
  }
  const [first] = upstream.arrived;
  first?.stream.end('to its end');

  expect((await other.answer(lasting)).body).toBe('to its end');
  expect(upstream.connections()).toBeLessThanOrEqual(1 + (AT_ONCE * ROUNDS) / 32);
});
