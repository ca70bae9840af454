import { describe, expect, it } from 'vitest';
import { get, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startRelay } from './relay.ts';
import { routeTo, startSidecar } from './sidecar.ts';

describe('a request that returns to the sidecar is refused as a loop', () => {
  it.each([
    ['GET', get('/')],
    ['POST', post('/', 'body')],
    ['an attempt to nominate the mark away', get('/', 'Connection: token-sidecar-hop')],
  ])('when the upstream is the sidecar itself (%s)', async (_, bytes) => {
    const relay = await startRelay();
    const sidecar = await startSidecar({ routes: [routeTo(relay)] });
    relay.to(sidecar.address);

    const answer = await sidecar.exchange(bytes);

    // The inner refusal is an upstream's answer to the outer request, whose sidecar's mark does not pass.
    expect([answer.status, answer.head.value('content-type')]).toEqual([508, 'application/problem+json']);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'loop_detected' });
    await sidecar.idle();
    expect(await sidecar.metric('proxy_requests_total')).toBe(2);
    expect(await sidecar.metric('proxy_errors_total', { error: 'loop_detected' })).toBe(1);
  });

  it('when it comes back through another sidecar', async () => {
    const relay = await startRelay();
    const outer = await startSidecar({ routes: [routeTo(relay)], instanceId: 'outer' });
    const inner = await startSidecar({ routes: [routeTo(outer)], instanceId: 'inner' });
    relay.to(inner.address);

    const answer = await outer.exchange(get('/'));

    expect(answer.status).toBe(508);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'loop_detected' });
    await Promise.all([outer.idle(), inner.idle()]);
    expect(await outer.metric('proxy_requests_total')).toBe(2);
    expect(await inner.metric('proxy_requests_total')).toBe(1);
  });
});

describe('the loop detection field', () => {
  it.each([
    ['is set', [], 'wire-instance'],
    ['is added to an existing value', ['token-sidecar-hop: other'], 'other, wire-instance'],
    ['is no part of another', ['Token-Sidecar-Hop: wire-instance-2'], 'wire-instance-2, wire-instance'],
  ])('%s', async (_, fields, expected) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(get('/', ...fields));

    const values = upstream.requests[0]?.head.values('token-sidecar-hop').join(', ');
    expect(values?.split(/\s*,\s*/).join(', ')).toBe(expected);
  });

  it.each([
    ['alone', ['token-sidecar-hop: wire-instance']],
    ['in a list', ['token-sidecar-hop: other ,wire-instance, third']],
    ['in a second field', ['token-sidecar-hop: other', 'TOKEN-SIDECAR-HOP: wire-instance']],
  ])('of this instance is refused: %s', async (_, fields) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/', ...fields)), 'loop_detected');
    expect(upstream.text).toBe('');
  });
});
