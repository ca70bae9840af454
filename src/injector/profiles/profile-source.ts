import type { JudgedProfile } from './profile.ts';

/** Where profiles are looked up: what the API has told of them, or files. */
export interface ProfileSource {
  /** Why they cannot be looked up now; undefined when they can. */
  unread(): string | undefined;
  namespaced(namespace: string, name: string): JudgedProfile | undefined;
  cluster(name: string): JudgedProfile | undefined;
  /** Labels of a namespace; undefined where they are not known. */
  labels(namespace: string): Readonly<Record<string, string>> | undefined;
}
