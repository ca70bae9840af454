import { expect, it } from 'vitest';
import { FIRST } from './fake-bearer.ts';
import { answer, get, ok, request } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

it('TRACE, whose answer repeats the request, carries neither the app’s token nor the sidecar’s', async () => {
  const upstream = await startUpstream(answering(ok('traced')));
  const sidecar = await startSidecar({ upstream });

  expect((await sidecar.exchange(request('TRACE', '/', ['Authorization: Basic x']))).body).toBe('traced');

  expect(upstream.requests[0]?.head.values('authorization')).toEqual([]);
});

it.each([301, 302, 303, 307, 308])('a redirect %i is passed on, and not followed', async (status) => {
  const elsewhere = await startUpstream(answering(ok('elsewhere')));
  const location = `http://${elsewhere.authority}/taken`;
  const upstream = await startUpstream(answering(answer(status, '', `Location: ${location}`)));
  const sidecar = await startSidecar({ upstream });

  const { head } = await sidecar.exchange(get('/'));
  await sidecar.idle();

  expect([head.startLine.split(' ')[1], head.value('location')]).toEqual([String(status), location]);
  expect(upstream.requests.map((arrived) => arrived.head.value('authorization'))).toEqual([FIRST]);
  expect(elsewhere.requests).toEqual([]);
});
