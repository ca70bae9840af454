import { expect, it } from 'vitest';
import { Http1AppStream } from '../../../src/proxy/app/http1/stream.ts';
import { requestHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { Destinations } from '../../../src/proxy/routing/destinations.ts';
import { get, ok } from '../../wire/messages.ts';
import { createPorts, FakeApp } from './ported-exchange.ts';

it('requests go where the finder says that is there when they come; those under way are not touched', () => {
  const { context, clock, upstream, upstreams } = createPorts();
  function begin(): FakeApp {
    const app = new FakeApp();
    const head = requestHeadReader(context.limits).read(Buffer.from(get('/'), 'latin1'), 0);
    if (head === undefined) throw new Error('the test gave no whole head');
    new Http1AppStream(app, context, head, clock.monotonicMs()).exchange.begin();
    return app;
  }
  const before = begin();
  context.destinations = new Destinations({
    routes: [],
    forwardProxy: undefined,
    captured: undefined,
    ownNames: undefined,
  });
  const after = begin();
  expect(after.text).toContain('token-sidecar-error: route_not_found\r\n');
  expect(upstreams).toHaveLength(1);
  upstream().connection.writer.flush();
  upstream().bring(ok('still here'));
  expect(before.text).toContain('still here');
});
