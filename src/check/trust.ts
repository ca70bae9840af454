/** Whom programs with this environment trust, and which variables override others. */

import type { X509Certificate } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';
import { formatAddress, reachableAddress } from '../platform/net/address.ts';
import { OVERRIDING, TRUST_VARIABLES } from '../platform/trust-variables.ts';
import { certificatesIn, INTERCEPTION_ROOT } from '../platform/x509/pem.ts';
import { type About, about, type Finding, fewAtOnce, wordsFor } from './examination.ts';

type Environment = Readonly<Record<string, string | undefined>>;

type Trust =
  /** The file contains the sidecar's root. */
  { readonly kind: 'trusting' } | { readonly kind: 'lacking'; readonly why: string };

/** A bundle of public roots has fewer. */
const MAX_CERTIFICATES = 2000;

export async function examineTrust(
  root: X509Certificate,
  env: Environment,
  hosts: readonly { readonly host: string }[],
  config: Config,
): Promise<Finding[]> {
  const of = about('interception');
  const set = TRUST_VARIABLES.flatMap(({ name }) => (env[name] ? [[name, env[name]] as const] : []));
  // Most of them name the same bundle.
  const files = [...new Set(set.map(([, file]) => file))];
  const trusts = await fewAtOnce(files, (file) => trustBy(file, root));
  const judged = new Map(set.map(([name, file]) => [name, trusts[files.indexOf(file)] as Trust] as const));
  return [
    ...variableFindings(judged, of),
    ...overridingFindings(judged, of),
    ...(config.forwardProxy?.connect === 'intercept' ? proxyFindings(env, hosts, config, of) : []),
  ];
}

function variableFindings(judged: ReadonlyMap<string, Trust>, of: About): Finding[] {
  if (judged.size === 0) {
    return [
      of.ok('trust', 'none of the variables of trust is set here: look in a container of the app for those'),
    ];
  }
  const trusting = [...judged].filter(([, { kind }]) => kind === 'trusting').map(([name]) => name);
  const lacking = [...judged].flatMap(([name, trust]) =>
    trust.kind === 'lacking' ? [[name, trust.why] as const] : [],
  );
  return [
    ...(trusting.length === 0 ? [] : [of.ok('trust', `the sidecar is trusted by ${trusting.join(', ')}`)]),
    ...lacking.map(([name, why]) => {
      const served = TRUST_VARIABLES.find((variable) => variable.name === name)?.servedBy ?? 'programs';
      const remedy = `set it to a file of interception.directory, or restart the container: ${served} will not trust the sidecar`;
      return of.warning('trust', `${name}: ${why}`, remedy);
    }),
  ];
}

/** A variable whose file lacks the root, if it overrides one whose file has it. */
function overridingFindings(judged: ReadonlyMap<string, Trust>, of: About): Finding[] {
  return OVERRIDING.flatMap(([program, variables]) => {
    const set = variables.filter((name) => judged.has(name));
    const [first, ...others] = set;
    if (first === undefined || judged.get(first)?.kind === 'trusting') return [];
    const overridden = others.filter((name) => judged.get(name)?.kind === 'trusting');
    if (overridden.length === 0) return [];
    const detail = `${first} overrides ${overridden.join(', ')} for ${program}`;
    return [
      of.warning(
        'overriding',
        detail,
        `take ${first} away, or set it to bundle.pem of interception.directory`,
      ),
    ];
  });
}

/** If a program heeds both, the lower-case spelling comes first. */
const PROXY_VARIABLES = ['https_proxy', 'HTTPS_PROXY'] as const;
const DIRECT_VARIABLES = ['no_proxy', 'NO_PROXY'] as const;

function proxyFindings(
  env: Environment,
  hosts: readonly { readonly host: string }[],
  { listen }: Config,
  of: About,
): Finding[] {
  const own = new URL(`http://${formatAddress(reachableAddress(listen))}`).host;
  const given = PROXY_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]] as const] : []));
  const other = given.filter(([, url]) => !URL.canParse(url) || new URL(url).host !== own);
  const excluded = DIRECT_VARIABLES.flatMap((name) => {
    const entries = (env[name] ?? '').split(',').map((entry) => entry.trim().toLowerCase());
    return hosts
      .filter(({ host }) => entries.some((entry) => isExcluded(host, entry)))
      .map(({ host }) => [name, host]);
  });
  return [
    // The address may contain a password, so it is not shown.
    ...other.map(([name]) =>
      of.warning('overriding', `${name} names another proxy than the sidecar's`, `set it to http://${own}`),
    ),
    ...excluded.map(([name, host]) =>
      of.warning(
        'overriding',
        `${name} excludes ${host}, which goes past the sidecar`,
        'take the host out of it',
      ),
    ),
  ];
}

function isExcluded(host: string, entry: string): boolean {
  const suffix = entry.replace(/^\*?\./, '');
  return entry === '*' || (suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`)));
}

async function trustBy(file: string, root: X509Certificate): Promise<Trust> {
  let text: string;
  try {
    text = await readBoundedFile(file, MAX_PEM_BYTES);
  } catch (error) {
    return { kind: 'lacking', why: `${file}: ${wordsFor(error)}` };
  }
  const found = certificatesIn(text, MAX_CERTIFICATES);
  if (found.some(({ raw }) => raw.equals(root.raw))) return { kind: 'trusting' };
  const theirs = found.some(({ subject }) => subject.includes(`CN=${INTERCEPTION_ROOT} `));
  const why = theirs
    ? 'has the root of an earlier start of the sidecar, and not of the last'
    : "lacks the sidecar's root";
  return { kind: 'lacking', why: `${file} ${why}` };
}
