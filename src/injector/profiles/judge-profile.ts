/** Whether a profile can be used, with every reason why not: pure, from what is written alone. */

import { readShape } from '../../config/file.ts';
import type { Problem } from '../../config/problems.ts';
import { credentialSources, type FilesOf } from './credential-sources.ts';
import type { JudgedProfile, ProfileIdentity, ValidProfile } from './profile.ts';
import { mostSpecificFirst, profileEntries, withMounts } from './profile-entries.ts';
import { planMounts } from './profile-mounts.ts';
import { type ClusterProfileSpec, clusterProfileSchema, profileSchema } from './profile-schema.ts';
import { type OwnedProblem, resolveEntries } from './resolve-entries.ts';
import { samenesses } from './same-requests.ts';

/** Characters of its JSON. A pod's annotations have 256 KiB for all of its profiles. */
const MOST_CHARACTERS = 64 * 1024;

const NAME = 'a name of 1 to 63 lower-case letters, digits and dashes';

/** @param written the `spec` of the object. */
export function judgeProfile(identity: ProfileIdentity, written: unknown, filesOf: FilesOf): JudgedProfile {
  const problems: Problem[] = [];
  const isNamed = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(identity.name);
  if (!isNamed) problems.push({ key: 'metadata.name', value: identity.name, expected: NAME });
  const text = JSON.stringify(written ?? {});
  if (text.length > MOST_CHARACTERS) {
    const expected = `at most ${MOST_CHARACTERS} characters`;
    problems.push({ key: 'spec', value: String(text.length), expected });
    return { state: 'invalid', identity, namespaces: {}, problems };
  }
  const spec = JSON.parse(text) as ClusterProfileSpec;
  const shape: Problem[] = [];
  const schema = identity.kind === 'TokenProfile' ? profileSchema : clusterProfileSchema;
  const isUnderstood = readShape(schema, spec, shape) !== undefined;
  problems.push(...shape.map((problem) => ({ ...problem, key: underSpec(problem.key) })));
  if (!isUnderstood)
    return { state: 'invalid', identity, namespaces: {}, problems: firstOfEachKey(problems) };

  const { namespaces = {}, serviceAccounts, ...own } = spec;
  const profile = { state: 'valid', identity, spec: own, namespaces, serviceAccounts } as ValidProfile;
  // A name that is wrong is so once, and not in everything that is called after it.
  const judgeable = isNamed ? profile : { ...profile, identity: { ...identity, name: 'profile' } };
  problems.push(...judgeSpec(judgeable, filesOf));
  if (problems.length === 0) return profile;
  return { state: 'invalid', identity, namespaces: profile.namespaces, problems: firstOfEachKey(problems) };
}

function judgeSpec(profile: ValidProfile, filesOf: FilesOf): readonly Problem[] {
  const { spec } = profile;
  const problems: Problem[] = [...referenceProblems(spec), ...brokerProblems(profile)];
  const areGivenOut = spec.credentials.some(
    ({ output }) => output?.file !== undefined || output?.endpoint === true,
  );
  if (spec.routes === undefined && spec.hosts === undefined && !areGivenOut) {
    problems.push({
      key: 'spec',
      expected: 'routes, hosts or credentials with an output: what the tokens are for',
    });
  }
  if (spec.mode !== undefined && (spec.mode === 'reverse') === (spec.hosts !== undefined)) {
    const expected =
      spec.mode === 'reverse' ? 'another mode, as there are hosts' : 'hosts beside it, or the mode reverse';
    problems.push({ key: 'spec.mode', value: spec.mode, expected });
  }
  const entries = mostSpecificFirst(withMounts(profileEntries(profile), planMounts()));
  for (const { first, second, field, value } of samenesses(entries)) {
    // Of names that are missing it has been said that they are.
    if (field === 'name' && problems.some(({ key }) => key === `${second.key}.name`)) continue;
    const expected = `another than that of ${first.key}`;
    problems.push({ key: `${second.key}.${field}`, value, expected });
  }
  if (problems.length > 0) return problems;
  const found: OwnedProblem[] = [];
  const { config } = resolveEntries(entries, found);
  problems.push(...found.map(({ of: _, ...problem }) => problem));
  entries.credentials.forEach((credential, index) => {
    const resolved = config?.credentials[index];
    if (resolved !== undefined) credentialSources(credential, resolved, filesOf, problems);
  });
  return problems;
}

/** What the broker cannot do, or must not. */
function brokerProblems({ identity, spec, serviceAccounts }: ValidProfile): readonly Problem[] {
  const viaBroker = [...spec.credentials.entries()].filter(([, { via }]) => via === 'broker');
  const problems: Problem[] = [];
  if (serviceAccounts !== undefined && viaBroker.length === 0) {
    const expected = 'nothing, as no credential is via broker: only the broker knows service accounts';
    problems.push({ key: 'spec.serviceAccounts', value: serviceAccounts.join(', '), expected });
  }
  for (const [index, { grant, serviceAccountToken }] of viaBroker) {
    const key = `spec.credentials[${index}]`;
    if (identity.kind === 'TokenProfile') {
      const expected = 'sidecar, as the broker serves ClusterTokenProfiles alone';
      problems.push({ key: `${key}.via`, value: 'broker', expected });
    }
    if (serviceAccountToken !== undefined) {
      const expected = 'nothing with via: broker, which has no service account of the pod';
      problems.push({ key: `${key}.serviceAccountToken`, expected });
    }
    if (grant === 'static' || grant === 'token_exchange') {
      const expected =
        'client_credentials or jwt_bearer with via: broker, whose tokens are for every pod and end';
      problems.push({ key: `${key}.grant`, value: grant, expected });
    }
  }
  return problems;
}

/** Names are needed where there are several, and what is named is there. */
function referenceProblems({
  credentials,
  routes = [],
  hosts = [],
}: ValidProfile['spec']): readonly Problem[] {
  const problems: Problem[] = [];
  for (const [list, entries] of Object.entries({ credentials, routes })) {
    entries.forEach(({ name }, index) => {
      if (name !== undefined || entries.length === 1) return;
      problems.push({ key: `spec.${list}[${index}].name`, expected: `a name, as there are several ${list}` });
    });
  }
  const names = credentials.flatMap(({ name }) => name ?? []);
  const all = names.join(', ') || 'none, as the only credential has no name';
  for (const [list, entries] of Object.entries({ routes, hosts })) {
    entries.forEach(({ credential }, index) => {
      const isKnown = credential === undefined ? credentials.length === 1 : names.includes(credential);
      if (isKnown) return;
      problems.push({
        key: `spec.${list}[${index}].credential`,
        ...(credential === undefined ? {} : { value: credential }),
        expected: `the name of one of the credentials: ${all}`,
      });
    });
  }
  return problems;
}

function underSpec(key: string): string {
  return key === '(file)' ? 'spec' : `spec.${key}`;
}

function firstOfEachKey(problems: readonly Problem[]): readonly Problem[] {
  return problems.filter(({ key }, index) => problems.findIndex((other) => other.key === key) === index);
}
