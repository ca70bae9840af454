import { expect, it, vi } from 'vitest';
import { Http1DownstreamStream } from '../../../src/proxy/downstream/http1/stream.ts';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { Destinations } from '../../../src/proxy/routing/destinations.ts';
import { get, ok } from '../../wire/messages.ts';
import { createPorts, FakeApp } from './ported-transaction.ts';

it('requests use the snapshot that is current when they arrive, and those in flight keep theirs', async () => {
  const { context, clock, upstream, upstreams, replaceDestinations } = createPorts();
  function begin() {
    const app = new FakeApp();
    const head = requestHeadReader(context.snapshot().limits).read(Buffer.from(get('/'), 'latin1'), 0);
    if (head === undefined) throw new Error('the test gave no whole head');
    const { transaction } = new Http1DownstreamStream(app, context, head, clock.monotonicMs());
    transaction.begin();
    return { app, transaction };
  }
  const before = begin();
  const first = context.snapshot();
  replaceDestinations(
    new Destinations({
      routes: [],
      forwardProxy: undefined,
      captured: undefined,
      redirected: undefined,
      ownNames: undefined,
    }),
  );
  const after = begin();
  expect(after.app.text).toContain('token-sidecar-error: route_not_found\r\n');
  expect(upstreams).toHaveLength(1);
  upstream().connection.writer.flush();
  const unused = vi.fn();
  const waited = first.whenUnused().then(unused);
  upstream().bring(ok('still here'));
  expect(before.app.text).toContain('still here');
  await Promise.resolve();
  expect(unused).not.toHaveBeenCalled();
  before.transaction.settle(clock.monotonicMs());
  await waited;
});
