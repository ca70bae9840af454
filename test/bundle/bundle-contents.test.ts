import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type BuiltCopy, buildCopy, REVISION } from './built-copy.ts';

let copy: BuiltCopy;
beforeAll(async () => {
  copy = await buildCopy('project');
}, 120_000);
afterAll(() => copy?.remove());

const read = (file: string): Promise<string> => readFile(join(copy.output, file), 'utf8');

/** The files with code in a file of the program. */
async function sourcesOf(file: string): Promise<string[]> {
  return (JSON.parse(await read(`${file}.map`)) as { sources: string[] }).sources;
}

/** Names of the packages with code in a file, as its source map tells them. */
async function packagesIn(file: string): Promise<Set<string>> {
  const sources = await sourcesOf(file);
  const names = sources.map((source) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]);
  return new Set(names.filter((name) => name !== undefined));
}

/** All but the bundler's own helpers, which are nobody's source. */
async function mappedFiles(): Promise<string[]> {
  const maps = (await readdir(copy.output)).filter((file) => file.endsWith('.js.map'));
  return maps.map((file) => file.slice(0, -'.map'.length));
}

async function packagesInAll(): Promise<Set<string>> {
  const each = await Promise.all((await mappedFiles()).map(packagesIn));
  return new Set(each.flatMap((names) => [...names]));
}

it('the file that every command begins with holds no package of the log', async () => {
  expect(await packagesIn('main.js')).not.toContain('pino');
});

describe('the sidecar’s file', () => {
  it('holds what the sidecar needs', async () => {
    const packages = await packagesIn('proxy.js');
    for (const name of ['pino', '@prometheus-io/client']) expect(packages).toContain(name);
  });

  it.each([/^@kubernetes\//, /^openid-client$/, /^undici$/, /^jose$/])(
    'holds nothing of %s, which only other commands need',
    async (banned) => {
      const found = [...(await packagesIn('proxy.js'))].filter((name) => banned.test(name));
      expect(found).toEqual([]);
      // It would have been seen: another command does hold it.
      expect([...(await packagesInAll())].filter((name) => banned.test(name))).not.toEqual([]);
    },
  );

  it('holds no module of the other domains', async () => {
    const sources = await sourcesOf('proxy.js');
    expect(sources).toContain('../src/sidecar/program.ts');
    expect(sources.filter((source) => /^\.\.\/src\/(injector|issuer|demo)\//.test(source))).toEqual([]);
  });
});

it('the program runs where nothing is installed', async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'token-sidecar-bundle-'));
  onTestFinished(() => rm(elsewhere, { recursive: true }));
  await cp(copy.output, join(elsewhere, 'dist'), { recursive: true });
  await cp(join(copy.root, 'package.json'), join(elsewhere, 'package.json'));
  const program = join(elsewhere, 'dist/token-sidecar.js');
  const run = (flag: string) => promisify(execFile)(process.execPath, [program, flag]);
  expect((await run('--version')).stdout).toMatch(`token-sidecar ${manifest.version} (revision ${REVISION}`);
  // The overview loads every command.
  expect((await run('--help')).stdout).toContain('  issuer ');
});

it('spans and their export are in a part of their own', async () => {
  const ofTraces = (names: ReadonlySet<string>) =>
    [...names].filter((name) => name.startsWith('@opentelemetry/'));
  expect(ofTraces(await packagesIn('proxy-tracing.js'))).toContain('@opentelemetry/sdk-trace');
  for (const file of ['token-sidecar.js', 'proxy.js', 'demo.js']) {
    expect([file, ofTraces(await packagesIn(file))]).toEqual([file, []]);
  }
});

it('no file imports a module of Node: an import statement reads all that the module has', async () => {
  for (const file of await mappedFiles()) {
    expect([
      file,
      /(?:^|[;}])import[^;()]{0,2000}from ?["']node:[a-z0-9_/]+["']/.exec(await read(file))?.[0],
    ]).toEqual([file, undefined]);
  }
});

it('the log has its own output, and none of pino’s', async () => {
  const packages = await packagesInAll();
  expect(packages).toContain('pino');
  for (const name of ['sonic-boom', 'thread-stream']) expect(packages).not.toContain(name);
});

it('what reads YAML is in a part of its own', async () => {
  expect(await packagesIn('proxy-yaml.js')).toContain('yaml');
  for (const file of ['proxy.js', 'gateway.js', 'demo.js', 'check.js']) {
    expect([file, [...(await packagesIn(file))]]).toEqual([file, expect.not.arrayContaining(['yaml'])]);
  }
});

it('a command and its parts share modules: no part has one that the command loads as well', async () => {
  const parts = (await mappedFiles()).filter((file) => file.startsWith('proxy-'));
  expect(parts).toContain('proxy-interception.js');
  const ofCommand = new Set(await sourcesOf('proxy.js'));
  for (const part of parts) {
    expect([part, (await sourcesOf(part)).filter((source) => ofCommand.has(source))]).toEqual([part, []]);
  }
});

it('the runbooks are in a part of explain, and nowhere else', async () => {
  const files = (await readdir(copy.output)).filter((file) => file.endsWith('.js'));
  const texts = await Promise.all(files.map(read));
  expect(files.filter((_, index) => texts[index]?.includes('# TokenSidecarDown'))).toEqual([
    'explain-runbooks.js',
  ]);
});

it('the client of the token cache is in a part of its own', async () => {
  const holding: string[] = [];
  for (const file of await mappedFiles()) {
    if ((await packagesIn(file)).has('@redis/client')) holding.push(file);
  }
  expect(holding).toEqual([expect.stringMatching(/^broker-.*cache/)]);
});

it('the status page is in a part of its own, with what runs in the browser in it, short and without types', async () => {
  const page = await read('proxy-status-page.js');
  expect(page).toContain('parseFromString');
  expect(page).not.toContain('HTMLElement');
  expect(page).not.toContain('stripTypeScriptTypes');
  expect(await read('proxy.js')).not.toContain('parseFromString');
  // Nor what the page and its report are made from.
  expect(await sourcesOf('proxy.js')).not.toContain('../src/sidecar/status/read-status.ts');
});

describe('what profiles come to', () => {
  it('is in a part of its own, with the rules of the configuration file', async () => {
    expect(await packagesIn('inject-profile-rules.js')).toContain('valibot');
    for (const file of ['inject.js', 'injector.js', 'injector-cluster-program.js']) {
      expect([file, [...(await packagesIn(file))]]).toEqual([file, expect.not.arrayContaining(['valibot'])]);
    }
  });

  it('is found by `inject`', async () => {
    const program = join(copy.output, 'token-sidecar.js');
    const manifests = join(import.meta.dirname, '../injector/golden/profiles.in.yaml');
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'inject', '-f', manifests]);
    expect(stdout).toContain(
      'token-sidecar.dev/profiles-in-use: TokenProfile/payments, ClusterTokenProfile/crm',
    );
  });
});

it('the program tells the revision that it was built from', async () => {
  expect(await read('proxy.js')).toContain(REVISION);
});

describe('what is said of the bundled packages', () => {
  /** Name and version as the list at the head of the licences has them. */
  async function listed(): Promise<string[]> {
    const [head = ''] = (await read('THIRD-PARTY-LICENSES.txt')).split('='.repeat(80));
    return [...head.matchAll(/^(\S+) \(.+\)$/gm)].map(([, key]) => key as string);
  }
  const nameOf = (key: string) => key.slice(0, key.lastIndexOf('@'));

  it('names every package with code in any file, and no other', async () => {
    const names = new Set((await listed()).map(nameOf));
    // The bundler's own helpers have no source file.
    expect(names.delete('rolldown')).toBe(true);
    expect(names).toEqual(await packagesInAll());
  });

  it('has the text of the licence of each', async () => {
    const [, ...sections] = (await read('THIRD-PARTY-LICENSES.txt')).split(`${'='.repeat(80)}\n`);
    const keys = await listed();
    expect(sections.map((section) => section.split('\n')[0])).toEqual(keys);
    for (const [index, section] of sections.entries()) {
      expect([keys[index], section]).toEqual([
        keys[index],
        expect.stringMatching(/permission|licen[cs]e|copyright|public domain/i),
      ]);
      expect(section.length).toBeGreaterThan(500);
    }
  });

  it('the bill of materials lists the same, each with its purl, digest and licence', async () => {
    const bill = JSON.parse(await read('sbom.cdx.json'));
    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { name: manifest.name, version: manifest.version, type: 'application' } },
    });
    type Component = { name: string; version: string };
    const keys = bill.components.map(({ name, version }: Component) => `${name}@${version}`);
    expect(new Set(keys)).toEqual(new Set(await listed()));
    for (const component of bill.components) {
      expect(component).toMatchObject({
        purl: expect.stringMatching(/^pkg:npm\//),
        hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
        licenses: [expect.anything()],
      });
    }
  });

  it('the bill of materials has nothing that differs from build to build, and no dangling reference', async () => {
    const bill = JSON.parse(await read('sbom.cdx.json'));
    expect(bill).not.toHaveProperty('serialNumber');
    expect(bill.metadata).not.toHaveProperty('timestamp');
    type Dependency = { ref: string; dependsOn: string[] };
    const known = [bill.metadata.component, ...bill.components].map((each) => each['bom-ref']);
    const used = bill.dependencies.flatMap(({ ref, dependsOn }: Dependency) => [ref, ...dependsOn]);
    expect(used.filter((ref: string) => !known.includes(ref))).toEqual([]);
  });
});
