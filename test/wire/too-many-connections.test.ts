import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { get, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { type Sidecar, startSidecar } from './sidecar.ts';
import { socketOfSidecar } from './sidecar-socket.ts';

async function start() {
  const clock = new ManualClock();
  const upstream = await startUpstream(answering(ok('fine')));
  const sidecar = await startSidecar({ upstream, clock, limits: { maxConnections: 1 } });
  const first = await sidecar.connect();
  await first.send(get('/')).response();
  return { clock, sidecar, first };
}

const warnings = ({ logLines }: Sidecar) =>
  logLines.filter((line) => line.includes('connections refused')).map((line) => JSON.parse(line));

describe('a connection over the limit', () => {
  it('is answered 503 before its request, counted, and closed', async () => {
    const { sidecar } = await start();
    const refused = await sidecar.connect();
    const answer = await refused.response();
    expectProblem(answer, 'overloaded');
    expect(answer.head.value('connection')).toBe('close');
    expect(answer.body).toContain('1 connections are open');
    expect(await refused.closed()).toBe('end');
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'overloaded' })).toBe(1);
    expect(await sidecar.metric('proxy_requests_total', { route: 'none', code: '503' })).toBe(1);
    expect(warnings(sidecar)).toMatchObject([{ level: 'warn', connections: 1 }]);
  });

  it('is read for a second so that the answer arrives, and then closed', async () => {
    const { clock, sidecar } = await start();
    const before = clock.pendingTimers;
    const refused = await sidecar.connect();
    expectProblem(await refused.response(), 'overloaded');
    expect(clock.pendingTimers).toBe(before + 1);
    const accepted = socketOfSidecar(refused);
    await clock.advance(999);
    expect(accepted.destroyed).toBe(false);
    await clock.advance(1);
    expect(accepted.destroyed).toBe(true);
  });

  it.each([
    ['goes', ''],
    ['asked, and goes,', get('/')],
  ])('that %s leaves no timer', async (_, asked) => {
    const { clock, sidecar } = await start();
    const before = clock.pendingTimers;
    const refused = await sidecar.connect();
    if (asked !== '') refused.send(asked);
    expectProblem(await refused.response(), 'overloaded');
    refused.end();
    await until(() => clock.pendingTimers === before);
  });

  it('of many at once is closed without an answer until one of the others has closed', async () => {
    const { sidecar } = await start();
    const told = [];
    for (let number = 0; number < 16; number++) {
      const refused = await sidecar.connect();
      expectProblem(await refused.response(), 'overloaded');
      told.push(refused);
    }
    const untold = await sidecar.connect();
    await untold.closed();
    expect(untold.received.text).toBe('');
    expect(await sidecar.metric('proxy_errors_total', { route: 'none', error: 'overloaded' })).toBe(17);
    told[0]?.destroy();
    await until(async () => {
      const next = await sidecar.connect();
      await next.closed();
      return next.received.text.includes('overloaded');
    });
  });

  it('is logged once, and counted in the log from then on', async () => {
    const { sidecar, first } = await start();
    for (let number = 0; number < 3; number++) {
      expectProblem(await (await sidecar.connect()).response(), 'overloaded');
    }
    expect(warnings(sidecar)).toHaveLength(1);
    first.end();
    await first.closed();
    const second = await sidecar.connect();
    expect((await second.send(get('/')).response()).status).toBe(200);
    expectProblem(await (await sidecar.connect()).response(), 'overloaded');
    expect(warnings(sidecar)).toHaveLength(1);
  });
});
