/** Line icons of 16 units. They are decoration: the button around one has the label. */

const PATHS = {
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  stop: "M4.5 4.5h7v7h-7z",
  clip: "M13 7.5 8.2 12.3a3 3 0 0 1-4.3-4.3l5-5a2 2 0 0 1 2.9 2.9l-5 5a1 1 0 0 1-1.4-1.4L9.8 5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  panel: "M2.5 3.5h11v9h-11zM10 3.5v9",
  chevron: "M6 4l4 4-4 4",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  close: "M4 4l8 8M12 4l-8 8",
  hide: "M2.5 3.5h11v9h-11zM6 3.5v9M11.5 6.200 9.700 8l1.800 1.800",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  check: "M3 8.5 6.5 12 13 4.5",
  retry: "M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5",
  edit: "M3 13l.6-2.8 7.2-7.2 2.2 2.2-7.2 7.2zM9.5 4.3l2.2 2.2",
  fork: "M4.5 5v6M4.5 5a1.5 1.5 0 1 0 0-.01M4.5 12.5a1.5 1.5 0 1 0 0-.01M11.5 5a1.5 1.5 0 1 0 0-.01M11.5 5c0 3.5-7 2.5-7 5.5",
  up: "M5 7v6.5M5 7.5 8 2.5c1.2 0 1.7.8 1.5 1.8L9 6.5h3.6c.8 0 1.3.7 1.1 1.5l-1 4.2c-.2.8-.8 1.3-1.6 1.3H5M2.5 7H5v6.5H2.5z",
  thumbDown:
    "M5 9V2.5M5 8.5l3 5c1.2 0 1.7-.8 1.5-1.8L9 9.5h3.6c.8 0 1.3-.7 1.1-1.5l-1-4.2c-.2-.8-.8-1.3-1.6-1.3H5M2.5 9H5V2.5H2.5z",
  trash: "M2.5 4.5h11M6 4.5V3h4v1.5M4 4.5l.6 8.5h6.8l.6-8.5M6.7 7v3.5M9.3 7v3.5",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.8 10.8 14 14",
  tool: "M9.8 3.2a3 3 0 0 1 3.6 3.6l-6 6a1.6 1.6 0 0 1-2.3-2.3l6-6M9.8 3.2l1.3 1.3",
  spark: "M8 2v3M8 11v3M2 8h3M11 8h3M4 4l1.8 1.8M10.2 10.2 12 12M12 4l-1.8 1.8M5.8 10.2 4 12",
  agent: "M3.5 6.5h9v6h-9zM8 6.5V4M8 4a1 1 0 1 0 0-.01M6 9v1M10 9v1",
  alert: "M8 2.5 14 13H2zM8 6.5v3M8 11.3v.2",
  hand: "M5 8V4.2a1 1 0 0 1 2 0V7 3.2a1 1 0 0 1 2 0V7 4.2a1 1 0 0 1 2 0V9c0 3-1.5 4.5-4 4.5-1.8 0-2.7-.8-3.6-2.5L2.2 8.800a1 1 0 0 1 1.6-1L5 9.300",
  light:
    "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1",
  dark: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500z",
  system: "M2.500 3.500h11v7h-11zM6 13h4M8 10.500V13",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  file: "M4 2.500h5l3 3v8H4zM9 2.500v3h3",
  play: "M5 3.500v9l7-4.500z",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  save: "M8 2.500v7M4.500 6.500 8 10l3.500-3.500M2.500 13h11",
  place:
    "M8 14s4.500-4.300 4.500-7.500a4.500 4.500 0 0 0-9 0C3.500 9.700 8 14 8 14zM8 8a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick: (event: MouseEvent) => void;
  class?: string;
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
}

export function IconButton({ icon, label, onClick, disabled, pressed, expanded, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      class={`icon-button ${rest.class ?? ""}`}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      aria-expanded={expanded}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}
