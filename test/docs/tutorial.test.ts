import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DEFAULT_RENEWAL } from '../../src/config/renewal.ts';
import { renewalDelayMs, spreadRenewalDelayMs } from '../../src/token/schedule.ts';
import { BLOCKS, ROOT } from './blocks.ts';
import { commandsIn } from './shell.ts';

const PAGE = 'docs/tutorial.md';
const TEXT = readFileSync(join(ROOT, PAGE), 'utf8').replace(/\s+/g, ' ');
const COMMANDS = BLOCKS.filter(({ file }) => file === PAGE).flatMap(({ text }) => commandsIn(text));

it('the life of the tokens, and when they are renewed, are what the schedule makes of it', () => {
  const [, seconds] = /issuer\.tokenLifetime=(\d+)s/.exec(TEXT) ?? [];
  const lifetimeMs = Number(seconds) * 1000;
  const [earliest, latest, first] = [
    renewalDelayMs(lifetimeMs, DEFAULT_RENEWAL, 1),
    renewalDelayMs(lifetimeMs, DEFAULT_RENEWAL, 0),
    spreadRenewalDelayMs(lifetimeMs, DEFAULT_RENEWAL, 1),
  ].map((ms) => Math.floor(ms / 1000));
  expect(TEXT).toContain(
    `A token of ${seconds} s is renewed every ${earliest} to ${latest} seconds, and the first one anywhere between ${first} and ${latest}.`,
  );
});

it('at every moment of the rotation the issuer takes the secret that the app has', () => {
  const secrets: Record<string, Record<string, string>> = {};
  const states: string[] = [];
  for (const { words } of COMMANDS.filter(({ words }) => words.join(' ').includes('create secret'))) {
    const namespace = words[words.indexOf('--namespace') + 1] ?? '';
    secrets[namespace] = Object.fromEntries(
      words.flatMap((word) => {
        const [, name, value] = /^--from-literal=(\w+)=(.*)$/.exec(word) ?? [];
        return name === undefined || value === undefined ? [] : [[name, value]];
      }),
    );
    const { shop, 'token-sidecar': issuer } = secrets;
    if (shop === undefined || issuer === undefined) continue;
    expect([issuer['client_secret'], issuer['second_client_secret']]).toContain(shop['client_secret']);
    states.push(shop['client_secret'] ?? '');
  }
  expect(states).toEqual(['the-first-secret', 'the-first-secret', 'the-second-secret', 'the-second-secret']);
});
