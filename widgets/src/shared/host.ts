// The part of anywidget's contract that the widgets use.

export interface Model {
  get(name: string): unknown;
  send(content: unknown): void;
  on(name: string, callback: (...args: never[]) => void): void;
  off(name?: string | null, callback?: ((...args: never[]) => void) | null): void;
}

export interface InitializeProps {
  model: Model;
  signal?: AbortSignal;
}

export interface RenderProps {
  model: Model;
  el: HTMLElement;
  signal?: AbortSignal;
}
